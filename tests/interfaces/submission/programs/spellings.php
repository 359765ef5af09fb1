<?php
// Sends messages by PHPMailer whose names need quotes, with a field that occurs twice. Arguments: port and API key.
require "/usr/share/php/libphp-phpmailer/autoload.php";

use PHPMailer\PHPMailer\PHPMailer;

foreach (["[Demo] Alerts", "Demo, Inc", "Demo @ Home", "Demo: Alerts", "hi@alice.example", "Zoë, Inc"] as $name) {
    $mail = new PHPMailer(true);
    $mail->isSMTP();
    $mail->CharSet = "utf-8";
    [$mail->Host, $mail->Port, $mail->SMTPAuth, $mail->SMTPAutoTLS] = ["127.0.0.1", (int) $argv[1], true, false];
    [$mail->Username, $mail->Password, $mail->Subject, $mail->Body] = ["postrider", $argv[2], $name, "It works."];
    $mail->setFrom("hi@alice.example", $name);
    $mail->addAddress("ada@example.com", $name);
    $mail->addCustomHeader("X-Virus-Scanned", "a");
    $mail->addCustomHeader("X-Virus-Scanned", "b");
    $mail->send();
}
