import com.rabbitmq.client.Channel;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.amqp.AmqpRejectAndDontRequeueException;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.stereotype.Component;

/** The application's listeners. What they saw is kept for the checks. */
@Component
public class Listeners {
  final BlockingQueue<String> simple = new LinkedBlockingQueue<>();
  final BlockingQueue<String> direct = new LinkedBlockingQueue<>();
  final BlockingQueue<Message> failed = new LinkedBlockingQueue<>();
  final BlockingQueue<Message> parked = new LinkedBlockingQueue<>();
  final BlockingQueue<Boolean> redelivered = new LinkedBlockingQueue<>();
  final AtomicInteger attempts = new AtomicInteger();
  final AtomicInteger rejections = new AtomicInteger();

  @Autowired RabbitTemplate template;

  static String text(Message message) {
    return new String(message.getBody(), java.nio.charset.StandardCharsets.UTF_8);
  }

  @RabbitListener(queues = "spring.simple", containerFactory = "simple")
  void simple(String body) {
    simple.add(body);
  }

  @RabbitListener(queues = "spring.direct", containerFactory = "direct")
  void direct(String body) {
    direct.add(body);
  }

  @RabbitListener(queues = "spring.rpc", containerFactory = "direct")
  String rpc(String question) {
    return "answer to " + question;
  }

  /** The first delivery is put back, the second one acknowledged. */
  @RabbitListener(queues = "spring.manual", containerFactory = "manual")
  void manual(Message message, Channel channel) throws Exception {
    boolean again = message.getMessageProperties().isRedelivered();
    long tag = message.getMessageProperties().getDeliveryTag();
    redelivered.add(again);
    if (again) {
      channel.basicAck(tag, false);
    } else {
      channel.basicNack(tag, false, true);
    }
  }

  @RabbitListener(queues = "spring.failing", containerFactory = "retrying")
  void failing(String body) {
    attempts.incrementAndGet();
    throw new IllegalStateException("cannot do " + body);
  }

  @RabbitListener(queues = "spring.failed", containerFactory = "simple")
  void failed(Message message) {
    failed.add(message);
  }

  /** A message dies here, waits in another queue, and comes back; after the third death it is parked. */
  @RabbitListener(queues = "spring.rejecting", containerFactory = "simple")
  void rejecting(Message message) {
    rejections.incrementAndGet();
    long died = 0;
    if (message.getMessageProperties().getXDeathHeader() != null) {
      for (var death : message.getMessageProperties().getXDeathHeader()) {
        if ("rejected".equals(death.get("reason"))) {
          died = (Long) death.get("count");
        }
      }
    }
    if (died < 3) {
      throw new AmqpRejectAndDontRequeueException("again later");
    }
    template.send("spring.dead", "park", message);
  }

  @RabbitListener(queues = "spring.parked", containerFactory = "direct")
  void parked(Message message) {
    parked.add(message);
  }
}
