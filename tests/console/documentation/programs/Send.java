// Runs the class of docs/frameworks/spring.md with Spring's mail sender. Arguments: the file with the
// properties; body (its file), signature and secret of a webhook.
import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.springframework.mail.javamail.JavaMailSenderImpl;

public class Send {
    private static final String PREFIX = "spring.mail.properties.";

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.load(new FileReader(arguments[0]));
        JavaMailSenderImpl sender = new JavaMailSenderImpl();
        sender.setHost(properties.getProperty("spring.mail.host"));
        sender.setPort(Integer.parseInt(properties.getProperty("spring.mail.port")));
        sender.setUsername(properties.getProperty("spring.mail.username"));
        sender.setPassword(properties.getProperty("spring.mail.password"));
        properties.stringPropertyNames().stream().filter(name -> name.startsWith(PREFIX)).forEach(name ->
            sender.getJavaMailProperties().setProperty(name.substring(PREFIX.length()), properties.getProperty(name)));
        new OrderMails(sender).shipped(1042, "ada@example.com");
        byte[] body = Files.readAllBytes(Path.of(arguments[1]));
        System.out.println(WebhookSignature.isGenuine(body, arguments[2], arguments[3]));
        System.out.println(WebhookSignature.isGenuine(body, arguments[2], arguments[3] + "x"));
    }
}
