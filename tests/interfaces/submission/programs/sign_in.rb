# Sends a message by Ruby's net-smtp. Arguments: port, API key, mechanism and subject.
require "net/smtp"

port, key, mechanism, subject = ARGV
message = "From: hi@alice.example\r\nTo: ada@example.com\r\nSubject: #{subject}\r\n\r\nIt works.\r\n"
smtp = Net::SMTP.new("127.0.0.1", port.to_i)
smtp.start("localhost", "postrider", key, mechanism.downcase.to_sym) do |session|
  session.send_message(message, "hi@alice.example", "ada@example.com")
end
