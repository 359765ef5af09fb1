<?php
// Runs the class of docs/frameworks/symfony.md with Symfony's Mailer. Arguments: the DSN and the file of the class.
require "Symfony/Component/Mailer/autoload.php";

use Symfony\Component\Mailer\Mailer;
use Symfony\Component\Mailer\Transport;

require $argv[2];
(new OrderMails(new Mailer(Transport::fromDsn($argv[1]))))->shipped(1042, "ada@example.com");
