import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.CancelCallback;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What the scenarios with the Java client share: names, waiting, consuming, asking the test. */
class Client {
  static final long WAIT_SECONDS = 10;

  static String name(String prefix) {
    return "interop-java-" + prefix + "-" + UUID.randomUUID();
  }

  static void expect(Object got, Object want, String what) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(what + ": got " + got + ", want " + want);
    }
  }

  static <T> T within(BlockingQueue<T> events, String what) throws InterruptedException {
    T event = events.poll(WAIT_SECONDS, TimeUnit.SECONDS);
    if (event == null) {
      throw new AssertionError("timed out: " + what);
    }
    return event;
  }

  static String text(byte[] body) {
    return new String(body, java.nio.charset.StandardCharsets.UTF_8);
  }

  static byte[] bytes(String text) {
    return text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }

  static List<Delivery> take(Channel channel, String queue, int count, boolean autoAck) throws Exception {
    BlockingQueue<Delivery> events = new LinkedBlockingQueue<>();
    String tag = channel.basicConsume(queue, autoAck, (t, d) -> events.add(d), (CancelCallback) t -> {});
    List<Delivery> got = new ArrayList<>();
    while (got.size() < count) {
      got.add(within(events, count + " messages from " + queue));
    }
    channel.basicCancel(tag);
    return got;
  }

  static List<String> bodies(List<Delivery> deliveries) {
    List<String> out = new ArrayList<>();
    for (Delivery d : deliveries) {
      out.add(text(d.getBody()));
    }
    return out;
  }

  static long left(Channel channel, String queue) throws IOException {
    return channel.messageCount(queue);
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> table(Object map) {
    return (Map<String, Object>) map;
  }

  static Map<String, Object> mapOf(Object... pairs) {
    Map<String, Object> out = new LinkedHashMap<>();
    for (int i = 0; i < pairs.length; i += 2) {
      out.put((String) pairs[i], pairs[i + 1]);
    }
    return out;
  }

  /**
   * An exclusive queue with arguments, given as name and value in turn. It outlives its consumers, unlike the
   * client's own default.
   */
  static String declare(Channel channel, Object... arguments) throws IOException {
    return channel.queueDeclare("", false, true, false, mapOf(arguments)).getQueue();
  }

  static void publish(Channel channel, String queue, String body) throws IOException {
    channel.basicPublish("", queue, null, bytes(body));
  }

  static void publish(Channel channel, String queue, String body, AMQP.BasicProperties.Builder properties)
      throws IOException {
    channel.basicPublish("", queue, properties.build(), bytes(body));
  }

  static AMQP.BasicProperties.Builder properties() {
    return new AMQP.BasicProperties.Builder();
  }

  /** A consumer whose deliveries are waited for one by one. */
  static class Collector {
    final BlockingQueue<Delivery> events = new LinkedBlockingQueue<>();
    final List<Delivery> got = new ArrayList<>();
    final Channel channel;
    final String queue;
    final String tag;

    Collector(Channel channel, String queue, boolean autoAck, Object... arguments) throws IOException {
      this.channel = channel;
      this.queue = queue;
      tag = channel.basicConsume(queue, autoAck, mapOf(arguments), (t, d) -> events.add(d), (CancelCallback) t -> {});
    }

    /** Waits until there are count, and says what came in all. */
    List<Delivery> atLeast(int count) throws InterruptedException {
      while (got.size() < count) {
        got.add(within(events, count + " messages from " + queue));
      }
      events.drainTo(got);
      return got;
    }
  }

  /** The reply code and text with which the broker closed a channel. */
  static AMQP.Channel.Close closed(Channel channel) throws InterruptedException {
    BlockingQueue<ShutdownSignalException> events = new LinkedBlockingQueue<>();
    channel.addShutdownListener(events::add);
    return (AMQP.Channel.Close) within(events, "channel.close").getReason();
  }

  static final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));

  /** Has the test do something to the broker, and returns when it is done. */
  static void ask(String what) throws IOException {
    System.out.println("ask " + what);
    answers.readLine();
  }
}
