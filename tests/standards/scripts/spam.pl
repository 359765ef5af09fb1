# Print the SpamAssassin rules that each message file hits, without asking the network: "file score rule,rule".
use strict;
use warnings;
use Mail::SpamAssassin;

my $filter = Mail::SpamAssassin->new({
    local_tests_only => 1, dont_copy_prefs => 1, userprefs_filename => '/dev/null', home_dir_for_helpers => $ARGV[0],
    userstate_dir => $ARGV[0],
});
for my $file (@ARGV[1 .. $#ARGV]) {
    open my $handle, '<:raw', $file or die "$file: $!";
    my $message = $filter->parse(do { local $/; <$handle> });
    my $status = $filter->check($message);
    printf "%s %.1f %s\n", $file, $status->get_score, $status->get_names_of_tests_hit;
    $status->finish;
    $message->finish;
}
