<?php
// Sends a message by PHPMailer. Arguments: port, API key, mechanism and subject.
require "/usr/share/php/libphp-phpmailer/autoload.php";

use PHPMailer\PHPMailer\PHPMailer;

$mail = new PHPMailer(true);
$mail->isSMTP();
[$mail->Host, $mail->Port, $mail->SMTPAuth, $mail->SMTPAutoTLS] = ["127.0.0.1", (int) $argv[1], true, false];
[$mail->Username, $mail->Password, $mail->AuthType, $mail->Subject] = ["postrider", $argv[2], $argv[3], $argv[4]];
$mail->setFrom("hi@alice.example");
$mail->addAddress("ada@example.com");
$mail->Body = "It works.";
$mail->send();
