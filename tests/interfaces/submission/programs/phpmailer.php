<?php
// Sends a message with attachments by PHPMailer. Arguments: port and API key.
require "/usr/share/php/libphp-phpmailer/autoload.php";

use PHPMailer\PHPMailer\PHPMailer;

$mail = new PHPMailer(true);
$mail->isSMTP();
[$mail->Host, $mail->Port, $mail->SMTPAuth, $mail->SMTPSecure] = ["localhost", (int) $argv[1], true, "tls"];
[$mail->Username, $mail->Password, $mail->CharSet] = ["postrider", $argv[2], "utf-8"];
$mail->SMTPOptions = ["ssl" => ["verify_peer" => false, "verify_peer_name" => false]];
$mail->setFrom("hello@demo.example", "Zoë");
$mail->addAddress("ada@example.com", "Ada");
$mail->addBCC("eve@example.com");
$mail->addReplyTo("help@example.com");
$mail->Subject = "By PHPMailer";
$mail->isHTML();
$mail->Body = '<p>Grüße <img src="cid:logo"></p>';
$mail->AltBody = "Grüße\n.dot\n";
$mail->addStringEmbeddedImage(hex2bin("89504e47"), "logo", "logo.png", "base64", "image/png");
$mail->addStringAttachment(str_repeat(implode("", array_map("chr", range(0, 255))), 40), "Übersicht.pdf");
$mail->send();
