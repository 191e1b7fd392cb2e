import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import java.io.IOException;
import java.util.Arrays;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** What queue arguments bring, with the Java client. */
class Queues extends Client {
  /** A queue whose dead letters go to the queue dead. */
  static String dying(Channel channel, String dead, Object... arguments) throws IOException {
    Object[] all = Arrays.copyOf(arguments, arguments.length + 4);
    System.arraycopy(new Object[] {"x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead}, 0, all,
        arguments.length, 4);
    return declare(channel, all);
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> death(Delivery delivery) {
    return ((List<Map<String, Object>>) delivery.getProperties().getHeaders().get("x-death")).get(0);
  }

  static void messageTTL(Connection connection, Channel channel) throws Exception {
    String dead = declare(channel);
    String byQueue = dying(channel, dead, "x-message-ttl", 50);
    String byItself = dying(channel, dead);
    publish(channel, byQueue, "queue");
    publish(channel, byItself, "own", properties().expiration("50"));
    Map<String, Delivery> got = new LinkedHashMap<>();
    for (Delivery d : take(channel, dead, 2, true)) {
      got.put(text(d.getBody()), d);
    }
    for (String[] c : new String[][] {{"queue", byQueue, "null"}, {"own", byItself, "50"}}) {
      Map<String, Object> death = death(got.get(c[0]));
      expect(death.get("reason").toString() + death.get("queue") + death.get("original-expiration")
          + got.get(c[0]).getProperties().getExpiration(), "expired" + c[1] + c[2] + "null", "death of " + c[0]);
    }
    publish(channel, byItself, "at once", properties().expiration("0"));
    expect(channel.basicGet(byItself, true), null, "a message with a time to live of 0");
  }

  /** Publishing does not keep a queue alive: once it is gone the messages come back. */
  static void queueExpires(Connection connection, Channel channel) throws Exception {
    String queue = name("expires");
    channel.queueDeclare(queue, false, false, false, mapOf("x-expires", 200));
    AtomicBoolean gone = new AtomicBoolean();
    channel.addReturnListener(r -> gone.set(true));
    channel.confirmSelect();
    long start = System.nanoTime();
    for (boolean first = true; !gone.get(); first = false) {
      channel.basicPublish("", queue, true, null, bytes("x"));
      channel.waitForConfirmsOrDie(WAIT_SECONDS * 1000);
      expect(first && gone.get(), false, "gone at once");
      expect(System.nanoTime() - start < WAIT_SECONDS * 1_000_000_000L, true, "expired in time");
    }
  }

  static void lengthDropHead(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel, "x-max-length", 2);
    String sized = declare(channel, "x-max-length-bytes", 10);
    for (String body : new String[] {"1", "2", "3"}) {
      publish(channel, queue, body);
    }
    publish(channel, sized, "123456");
    publish(channel, sized, "abcdef");
    expect(bodies(take(channel, queue, 2, true)), Arrays.asList("2", "3"), "kept");
    expect(bodies(take(channel, sized, 1, true)), Arrays.asList("abcdef"), "kept by size");
  }

  static boolean confirmed(Channel channel, String queue, String body) throws Exception {
    publish(channel, queue, body);
    return channel.waitForConfirms(WAIT_SECONDS * 1000);
  }

  static void lengthRejectPublish(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel, "x-max-length", 1, "x-overflow", "reject-publish");
    channel.confirmSelect();
    expect(confirmed(channel, queue, "kept"), true, "confirm");
    expect(confirmed(channel, queue, "over"), false, "confirm over the limit");
    expect(bodies(take(channel, queue, 1, true)), Arrays.asList("kept"), "kept");
    expect(confirmed(channel, queue, "room again"), true, "confirm");
  }

  static void lengthRejectPublishDLX(Connection connection, Channel channel) throws Exception {
    String dead = declare(channel);
    String queue = dying(channel, dead, "x-max-length", 1, "x-overflow", "reject-publish-dlx");
    channel.confirmSelect();
    expect(confirmed(channel, queue, "kept"), true, "confirm");
    expect(confirmed(channel, queue, "over"), false, "confirm over the limit");
    Delivery d = take(channel, dead, 1, true).get(0);
    expect(text(d.getBody()) + death(d).get("reason"), "overmaxlen", "dead letter");
  }

  /** A rejected, an expired and an overflowing message each end in the dead-letter queue with their reason. */
  static void deadLetter(Connection connection, Channel channel) throws Exception {
    String dead = declare(channel);
    String exchange = name("dlx");
    channel.exchangeDeclare(exchange, "fanout", false, true, null);
    channel.queueBind(dead, exchange, "");
    String source = declare(channel, "x-dead-letter-exchange", exchange, "x-dead-letter-routing-key", "rerouted",
        "x-max-length", 1);
    publish(channel, source, "1");
    channel.basicReject(channel.basicGet(source, false).getEnvelope().getDeliveryTag(), false);
    Map<String, Object> again = died(channel, dead, exchange, source, "1", "rejected", 1);
    publish(channel, source, "1", properties().headers(again));
    channel.basicNack(channel.basicGet(source, false).getEnvelope().getDeliveryTag(), false, false);
    died(channel, dead, exchange, source, "1", "rejected", 2);
    publish(channel, source, "2", properties().expiration("20"));
    died(channel, dead, exchange, source, "2", "expired", 1);
    publish(channel, source, "3");
    publish(channel, source, "4");
    died(channel, dead, exchange, source, "3", "maxlen", 1);
  }

  static Map<String, Object> died(Channel channel, String dead, String exchange, String source, String body,
      String reason, long count) throws Exception {
    Delivery d = take(channel, dead, 1, true).get(0);
    expect(text(d.getBody()) + d.getEnvelope().getExchange() + d.getEnvelope().getRoutingKey(),
        body + exchange + "rerouted", "where it came from");
    Map<String, Object> headers = d.getProperties().getHeaders();
    Map<String, Object> death = death(d);
    expect(death.get("count"), count, "count");
    expect(death.get("time") instanceof Date, true, "time of death");
    expect(death.get("reason").toString() + death.get("queue") + death.get("exchange") + death.get("routing-keys"),
        reason + source + "" + "[" + source + "]", "x-death");
    for (String when : new String[] {"first", "last"}) {
      String prefix = "x-" + when + "-death-";
      expect("" + headers.get(prefix + "reason") + headers.get(prefix + "queue") + headers.get(prefix + "exchange"),
          reason + source, prefix);
    }
    return headers;
  }

  static void priorityQueue(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel, "x-max-priority", 5);
    for (int priority : new int[] {1, 5, 0, 3, 9, 1}) {
      publish(channel, queue, String.valueOf(priority), priority == 0 ? properties() : properties().priority(priority));
    }
    expect(bodies(take(channel, queue, 6, true)), Arrays.asList("5", "9", "3", "1", "1", "0"), "by priority");
  }

  static void quorumDeliveryLimit(Connection connection, Channel channel) throws Exception {
    String dead = declare(channel);
    String queue = name("quorum");
    channel.queueDeclare(queue, true, false, false, mapOf("x-queue-type", "quorum", "x-delivery-limit", 2,
        "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
    channel.confirmSelect();
    expect(confirmed(channel, queue, "poison"), true, "confirm");
    Collector consumer = new Collector(channel, queue, false);
    for (int count = 0; count < 3; count++) {
      Delivery d = consumer.atLeast(count + 1).get(count);
      Map<String, Object> headers = d.getProperties().getHeaders();
      Object counted = headers == null ? null : headers.get("x-delivery-count");
      expect(counted == null ? 0L : counted, (long) count, "x-delivery-count");
      expect(d.getEnvelope().isRedeliver(), count > 0, "redelivered");
      channel.basicNack(d.getEnvelope().getDeliveryTag(), false, true);
    }
    Map<String, Object> death = death(take(channel, dead, 1, true).get(0));
    expect(death.get("reason").toString() + death.get("queue"), "delivery_limit" + queue, "after the limit");
    expect(consumer.atLeast(3).size(), 3, "tries");
    channel.queueDelete(queue);
  }

  static void streamOffset(Connection connection, Channel channel) throws Exception {
    String queue = name("stream");
    channel.queueDeclare(queue, true, false, false, mapOf("x-queue-type", "stream"));
    channel.confirmSelect();
    for (int i = 0; i < 5; i++) {
      expect(confirmed(channel, queue, String.valueOf(i)), true, "confirm");
    }
    channel.basicQos(10);
    for (Object offset : new Object[] {"first", 3, "1h"}) {
      int first = offset.equals(3) ? 3 : 0;
      Collector consumer = new Collector(channel, queue, false, "x-stream-offset", offset);
      read(consumer.atLeast(5 - first), first, 5);
      channel.basicAck(consumer.got.get(4 - first).getEnvelope().getDeliveryTag(), true);
      channel.basicCancel(consumer.tag);
    }
    Collector next = new Collector(channel, queue, false, "x-stream-offset", "next");
    expect(confirmed(channel, queue, "5"), true, "confirm");
    read(next.atLeast(1), 5, 6);
    channel.queueDelete(queue);
  }

  static void read(List<Delivery> got, int first, int end) {
    expect(got.size(), end - first, "messages read");
    for (int i = first; i < end; i++) {
      Delivery d = got.get(i - first);
      expect(text(d.getBody()) + d.getProperties().getHeaders().get("x-stream-offset"), "" + i + i, "read");
    }
  }

  static void consumerTimeout(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel, "x-consumer-timeout", 200);
    publish(channel, queue, "forgotten");
    new Collector(channel, queue, false);
    AMQP.Channel.Close close = closed(channel);
    expect(close.getReplyCode(), 406, "reply code");
    expect(close.getReplyText().contains("timed out. Timeout value used: 200 ms"), true, close.getReplyText());
    GetResponse back = connection.createChannel().basicGet(queue, true);
    expect(text(back.getBody()) + back.getEnvelope().isRedeliver(), "forgottentrue", "back in the queue");
  }
}
