<?php
// Runs the sample of docs/frameworks/laravel.md with Laravel's mailer, without the rest of the framework.
// Arguments: the file with the settings, and the one of the sample.
// Illuminate loads Swift Mailer without its dependencies.
require "Egulias/EmailValidator/autoload.php";
require "Illuminate/Mail/autoload.php";

use Illuminate\Container\Container;
use Illuminate\Contracts\View\Factory;
use Illuminate\Mail\MailManager;
use Illuminate\Support\Facades\Facade;

$env = parse_ini_file($argv[1], false, INI_SCANNER_RAW);
// As config/mail.php of a new application has it.
$smtp = [
    "transport" => "smtp", "host" => $env["MAIL_HOST"], "port" => $env["MAIL_PORT"], "encryption" => "tls",
    "username" => $env["MAIL_USERNAME"], "password" => $env["MAIL_PASSWORD"], "timeout" => null,
];
$config = new ArrayObject([
    "mail.driver" => null,
    "mail.default" => $env["MAIL_MAILER"],
    "mail.mailers.smtp" => $smtp,
    "mail.from" => ["address" => $env["MAIL_FROM_ADDRESS"], "name" => $env["MAIL_FROM_NAME"]],
    "mail.reply_to" => null, "mail.to" => null, "mail.return_path" => null,
]);
$views = new class implements Factory {
    public function exists($view) { return false; }
    public function file($path, $data = [], $mergeData = []) {}
    public function make($view, $data = [], $mergeData = []) {}
    public function share($key, $value = null) {}
    public function composer($views, $callback) { return []; }
    public function creator($views, $callback) { return []; }
    public function addNamespace($namespace, $hints) { return $this; }
    public function replaceNamespace($namespace, $hints) { return $this; }
};
$app = new Container();
$app->instance("config", $config);
$app->instance("view", $views);
$app->bind("events", fn () => null);
$app->singleton("mail.manager", fn ($app) => new MailManager($app));
Facade::setFacadeApplication($app);
require $argv[2];
