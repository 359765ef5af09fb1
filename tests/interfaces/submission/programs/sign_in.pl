# Sends a message by Net::SMTP. Arguments: port, API key, mechanism and subject.
use strict;
use warnings;
use Authen::SASL;
use Net::SMTP;

my ($port, $key, $mechanism, $subject) = @ARGV;
my $smtp = Net::SMTP->new("127.0.0.1", Port => $port, Timeout => 30) or die $@;
my $sasl = Authen::SASL->new(mechanism => $mechanism, callback => { user => "postrider", authname => "", pass => $key });
$smtp->auth($sasl) or die $smtp->message;
$smtp->mail('hi@alice.example') && $smtp->to('ada@example.com') or die $smtp->message;
$smtp->data("From: hi\@alice.example\nTo: ada\@example.com\nSubject: $subject\n\nIt works.\n") or die $smtp->message;
$smtp->quit;
