# Sends a message with an attachment by Net::SMTP, as Action Mailer does. Arguments: port and API key.
require "net/smtp"

port, key = ARGV
file = ((0..255).to_a * 40).pack("C*")
message = <<~MAIL.gsub("\n", "\r\n")
  From: Zoe <hello@demo.example>
  To: ada@example.com
  Subject: By Net::SMTP
  MIME-Version: 1.0
  Content-Type: multipart/mixed; boundary=b

  --b
  Content-Type: text/plain; charset=utf-8
  Content-Transfer-Encoding: 8bit

  Grüße
  .dot

  --b
  Content-Type: application/pdf; name="a.pdf"
  Content-Disposition: attachment; filename="a.pdf"
  Content-Transfer-Encoding: base64

  #{[file].pack("m")}
  --b--
MAIL
smtp = Net::SMTP.new("localhost", port.to_i)
smtp.enable_starttls(OpenSSL::SSL::SSLContext.new)
smtp.start("localhost", "postrider", key, :plain) do |session|
  session.send_message(message, "bounce@elsewhere.example", "ada@example.com", "eve@example.com")
end
