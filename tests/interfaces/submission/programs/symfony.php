<?php
// Sends a message with attachments by Symfony's Mailer. Arguments: its DSN.
require "Symfony/Component/Mailer/autoload.php";

use Symfony\Component\Mailer\Mailer;
use Symfony\Component\Mailer\Transport;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;

$email = (new Email())
    ->from(new Address("hello@demo.example", "Zoë"))
    ->to("ada@example.com")
    ->bcc("eve@example.com")
    ->replyTo("help@example.com")
    ->subject("By Symfony")
    ->text("Grüße\n.dot\n")
    ->html('<p>Grüße <img src="cid:logo"></p>')
    ->embed(hex2bin("89504e47"), "logo", "image/png")
    ->attach(str_repeat(implode("", array_map("chr", range(0, 255))), 40), "Übersicht.pdf", "application/pdf");
(new Mailer(Transport::fromDsn($argv[1])))->send($email);
