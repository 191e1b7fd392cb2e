import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Routing beyond the four exchange types, who gets what, and alarms, with the Java client. */
class Extensions extends Client {
  static void consumerPriority(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    channel.basicQos(2);
    Collector low = new Collector(channel, queue, false);
    Collector high = new Collector(channel, queue, false, "x-priority", 10);
    for (int i = 0; i < 3; i++) {
      publish(channel, queue, String.valueOf(i));
    }
    expect(bodies(high.atLeast(2)), Arrays.asList("0", "1"), "the higher");
    expect(bodies(low.atLeast(1)), Arrays.asList("2"), "the lower");
  }

  static void singleActiveConsumer(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel, "x-single-active-consumer", true);
    Collector first = new Collector(channel, queue, true);
    Collector second = new Collector(channel, queue, true);
    publish(channel, queue, "1");
    publish(channel, queue, "2");
    first.atLeast(2);
    channel.basicCancel(first.tag);
    publish(channel, queue, "3");
    expect(bodies(second.atLeast(1)), Arrays.asList("3"), "the next");
    expect(bodies(first.atLeast(2)), Arrays.asList("1", "2"), "the first");
  }

  static void directReplyTo(Connection connection, Channel channel) throws Exception {
    String service = declare(channel);
    Collector replies = new Collector(channel, "amq.rabbitmq.reply-to", true);
    publish(channel, service, "question", properties().replyTo("amq.rabbitmq.reply-to").correlationId("42"));
    expect(left(channel, service), 1L, "the request");
    Channel other = connection.createChannel();
    GetResponse request = other.basicGet(service, true);
    String replyTo = request.getProps().getReplyTo();
    expect(replyTo.startsWith("amq.rabbitmq.reply-to."), true, replyTo);
    publish(other, replyTo, "answer", properties().correlationId(request.getProps().getCorrelationId()));
    Delivery reply = replies.atLeast(1).get(0);
    expect(text(reply.getBody()) + reply.getProperties().getCorrelationId(), "answer42", "reply");
  }

  static void connectionBlocked(Connection connection, Channel channel) throws Exception {
    String queue = name("blocked");
    channel.queueDeclare(queue, false, false, false, null);
    publish(channel, queue, "before");
    expect(left(channel, queue), 1L, "before");
    Connection publisher = Scenarios.connect();
    Channel sender = publisher.createChannel();
    BlockingQueue<String> told = new LinkedBlockingQueue<>();
    publisher.addBlockedListener(told::add, () -> told.add("unblocked"));
    ask("alarm-on");
    publish(sender, queue, "held");
    expect(within(told, "connection.blocked"), "low on disk", "told");
    expect(text(channel.basicGet(queue, true).getBody()), "before", "read during the alarm");
    expect(channel.basicGet(queue, true), null, "nothing of the blocked connection");
    ask("alarm-off");
    expect(within(told, "connection.unblocked"), "unblocked", "told");
    expect(bodies(take(channel, queue, 1, true)), Arrays.asList("held"), "after the alarm");
    channel.queueDelete(queue);
    publisher.close();
  }

  static void ccBCC(Connection connection, Channel channel) throws Exception {
    String to = declare(channel);
    String copy = declare(channel);
    String hidden = declare(channel);
    publish(channel, to, "x",
        properties().headers(mapOf("CC", Arrays.asList(copy), "BCC", Arrays.asList(hidden), "n", 1)));
    for (String queue : new String[] {to, copy, hidden}) {
      Delivery d = take(channel, queue, 1, true).get(0);
      Map<String, Object> headers = d.getProperties().getHeaders();
      expect(text(d.getBody()) + d.getEnvelope().getRoutingKey() + headers.get("CC") + headers.get("BCC")
          + headers.get("n"), "x" + to + "[" + copy + "]" + "null" + "1", queue);
    }
  }

  static void alternateExchange(Connection connection, Channel channel) throws Exception {
    String other = name("other");
    String exchange = name("main");
    channel.exchangeDeclare(other, "fanout");
    channel.exchangeDeclare(exchange, "direct", false, false, mapOf("alternate-exchange", other));
    String queue = declare(channel);
    channel.queueBind(queue, other, "");
    BlockingQueue<String> returned = new LinkedBlockingQueue<>();
    channel.addReturnListener(r -> returned.add(r.getReplyText()));
    channel.confirmSelect();
    channel.basicPublish(exchange, "nowhere", true, null, bytes("x"));
    channel.waitForConfirmsOrDie(WAIT_SECONDS * 1000);
    expect(returned.poll(), null, "a return");
    Delivery d = take(channel, queue, 1, true).get(0);
    expect(text(d.getBody()) + d.getEnvelope().getExchange() + d.getEnvelope().getRoutingKey(),
        "x" + exchange + "nowhere", "by the alternate exchange");
    channel.exchangeDelete(exchange);
    channel.exchangeDelete(other);
  }

  static void consistentHash(Connection connection, Channel channel) throws Exception {
    String exchange = name("hash");
    channel.exchangeDeclare(exchange, "x-consistent-hash");
    String light = declare(channel);
    String heavy = declare(channel);
    channel.queueBind(light, exchange, "1");
    channel.queueBind(heavy, exchange, "3");
    for (int i = 0; i < 800; i++) {
      channel.basicPublish(exchange, "key-" + i % 400, null, bytes("key-" + i % 400));
    }
    long few = left(channel, light);
    long many = left(channel, heavy);
    expect(few + many, 800L, "all arrive");
    expect(0 < few && few < many, true, "shares " + few + " and " + many);
    List<String> got = bodies(take(channel, light, (int) few, true));
    expect(2L * new HashSet<>(got).size(), few, "both of a key's messages are in one queue");
    channel.exchangeDelete(exchange);
  }

  static void delayedMessage(Connection connection, Channel channel) throws Exception {
    String exchange = name("delayed");
    channel.exchangeDeclare(exchange, "x-delayed-message", false, false, mapOf("x-delayed-type", "direct"));
    String queue = declare(channel);
    channel.queueBind(queue, exchange, "k");
    long started = System.nanoTime();
    AMQP.BasicProperties later = properties().headers(mapOf("x-delay", 300)).build();
    channel.basicPublish(exchange, "k", later, bytes("later"));
    channel.basicPublish(exchange, "k", null, bytes("now"));
    List<Delivery> got = take(channel, queue, 2, true);
    expect(bodies(got), Arrays.asList("now", "later"), "order");
    expect(((Number) got.get(1).getProperties().getHeaders().get("x-delay")).longValue(), -300L, "x-delay");
    expect(System.nanoTime() - started >= 300_000_000L, true, "not too early");
    channel.exchangeDelete(exchange);
  }
}
