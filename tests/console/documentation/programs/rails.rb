# Runs the blocks of docs/frameworks/rails.md with Action Mailer. Arguments: the directory that contains them.
require "action_mailer"
require "active_job"

home = ARGV.fetch(0)
config = Struct.new(:action_mailer).new(ActionMailer::Base)
read = ->(name) { File.read(File.join(home, name)) }
ActiveJob::Base.queue_adapter = :inline
ActiveJob::Base.logger = nil
class ApplicationMailer < ActionMailer::Base; end
ApplicationMailer.prepend_view_path(File.join(home, "views"))
eval read.call("settings.rb"), binding
eval read.call("mailer.rb"), TOPLEVEL_BINDING
eval read.call("job.rb"), TOPLEVEL_BINDING
eval read.call("send.rb"), TOPLEVEL_BINDING
