import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.CancelCallback;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.Return;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.client.impl.CredentialsProvider;
import com.rabbitmq.client.impl.CredentialsRefreshService;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;

/** The core of the protocol with the Java client. */
class Core extends Client {
  static void confirmConsumeAck(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    Map<String, Object> headers = new LinkedHashMap<>();
    headers.put("int", -7);
    headers.put("long", 1L << 40);
    headers.put("real", 0.5);
    headers.put("flag", true);
    headers.put("list", Arrays.asList(1, 2));
    headers.put("table", Collections.singletonMap("n", 3));
    AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().contentType("text/plain")
        .contentEncoding("utf-8").headers(headers).deliveryMode(2).priority(3).correlationId("c").replyTo("r")
        .expiration("60000").messageId("m").timestamp(new Date(1700000000000L)).type("t").userId("guest").appId("a")
        .build();
    channel.confirmSelect();
    List<String> want = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      want.add(String.valueOf(i));
      channel.basicPublish("", queue, properties, bytes(want.get(i)));
    }
    channel.waitForConfirmsOrDie(WAIT_SECONDS * 1000);
    List<Delivery> got = take(channel, queue, 100, false);
    expect(bodies(got), want, "bodies in order");
    expect(got.get(0).getProperties().toString(), properties.toString(), "properties");
    channel.basicAck(got.get(99).getEnvelope().getDeliveryTag(), true);
    expect(left(channel, queue), 0L, "left after the ack");
  }

  static void nackRequeueReject(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    channel.basicPublish("", queue, null, bytes("one"));
    channel.basicPublish("", queue, null, bytes("two"));
    GetResponse first = channel.basicGet(queue, false);
    expect(text(first.getBody()) + first.getEnvelope().isRedeliver(), "onefalse", "first get");
    channel.basicNack(first.getEnvelope().getDeliveryTag(), false, true);
    GetResponse again = channel.basicGet(queue, false);
    expect(text(again.getBody()) + again.getEnvelope().isRedeliver(), "onetrue", "requeued to its place");
    channel.basicReject(again.getEnvelope().getDeliveryTag(), false);
    GetResponse last = channel.basicGet(queue, true);
    expect(text(last.getBody()) + last.getEnvelope().isRedeliver() + last.getMessageCount(), "twofalse0", "last");
  }

  static void getEmpty(Connection connection, Channel channel) throws Exception {
    expect(channel.basicGet(declare(channel), true), null, "get from an empty queue");
  }

  static void mandatoryReturn(Connection connection, Channel channel) throws Exception {
    BlockingQueue<Return> events = new LinkedBlockingQueue<>();
    channel.addReturnListener((com.rabbitmq.client.ReturnCallback) events::add);
    channel.confirmSelect();
    channel.basicPublish("", name("nowhere"), true, null, bytes("lost"));
    channel.waitForConfirmsOrDie(WAIT_SECONDS * 1000);
    Return returned = within(events, "basic.return");
    expect(returned.getReplyCode() + text(returned.getBody()), "312lost", "return");
  }

  static void route(Channel channel, String kind, Object[][] bindings, Object[][] publishes, String... want)
      throws Exception {
    String exchange = name(kind);
    channel.exchangeDeclare(exchange, kind);
    String queue = declare(channel);
    for (Object[] b : bindings) {
      channel.queueBind(queue, exchange, (String) b[0], table(b[1]));
    }
    for (Object[] p : publishes) {
      AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().headers(table(p[2])).build();
      channel.basicPublish(exchange, (String) p[1], properties, bytes((String) p[0]));
    }
    expect(bodies(take(channel, queue, want.length, true)), Arrays.asList(want), "routed");
    expect(left(channel, queue), 0L, "routed beyond that");
    channel.exchangeDelete(exchange);
  }

  static void topic(Connection connection, Channel channel) throws Exception {
    route(channel, "topic", new Object[][] {{"a.*.c", null}, {"x.#", null}},
        new Object[][] {{"1", "a.b.c", null}, {"no", "a.b.d", null}, {"2", "x", null}, {"3", "x.y.z", null},
            {"no", "a.c", null}}, "1", "2", "3");
  }

  static void headers(Connection connection, Channel channel) throws Exception {
    route(channel, "headers",
        new Object[][] {{"", mapOf("x-match", "all", "n", 1, "s", "v")},
            {"", mapOf("x-match", "any", "p", "q", "r", true)}},
        new Object[][] {{"1", "", mapOf("n", 1, "s", "v", "more", 2)}, {"no", "", mapOf("n", 1)},
            {"2", "", mapOf("r", true)}, {"no", "", mapOf("r", false)}, {"no", "", null}}, "1", "2");
  }

  static void exchangeBind(Connection connection, Channel channel) throws Exception {
    String source = name("source");
    String target = name("target");
    channel.exchangeDeclare(source, "direct");
    channel.exchangeDeclare(target, "fanout");
    String queue = declare(channel);
    channel.exchangeBind(target, source, "k");
    channel.queueBind(queue, target, "");
    channel.basicPublish(source, "k", null, bytes("through"));
    channel.basicPublish(source, "other", null, bytes("no"));
    expect(bodies(take(channel, queue, 1, true)), Arrays.asList("through"), "through two exchanges");
    channel.exchangeUnbind(target, source, "k");
    channel.basicPublish(source, "k", null, bytes("no"));
    expect(left(channel, queue), 0L, "after the unbind");
    channel.exchangeDelete(source);
    channel.exchangeDelete(target);
  }

  static void cancelNotify(Connection connection, Channel channel) throws Exception {
    String queue = name("cancel");
    channel.queueDeclare(queue, false, false, false, null);
    BlockingQueue<String> cancelled = new LinkedBlockingQueue<>();
    String tag = channel.basicConsume(queue, false, (t, d) -> {}, (CancelCallback) cancelled::add);
    connection.createChannel().queueDelete(queue);
    expect(within(cancelled, "basic.cancel"), tag, "consumer tag");
  }

  static void prefetch(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    channel.basicQos(2);
    List<String> want = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      want.add(String.valueOf(i));
      channel.basicPublish("", queue, null, bytes(want.get(i)));
    }
    BlockingQueue<Delivery> events = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, false, (t, d) -> events.add(d), (CancelCallback) t -> {});
    List<Delivery> got = new ArrayList<>();
    got.add(within(events, "first delivery"));
    got.add(within(events, "second delivery"));
    // The count travels behind every delivery made so far: three wait, two are out.
    expect(left(channel, queue), 3L, "held back by prefetch 2");
    channel.basicAck(got.get(1).getEnvelope().getDeliveryTag(), true);
    while (got.size() < 5) {
      got.add(within(events, "deliveries after acks"));
      channel.basicAck(got.get(got.size() - 1).getEnvelope().getDeliveryTag(), false);
    }
    expect(bodies(got), want, "delivered");
  }

  static void largeBody(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    channel.confirmSelect();
    int[] sizes = {0, 1, 4088, 4089, 131064, 131065, 1 << 20};
    List<byte[]> sent = new ArrayList<>();
    for (int size : sizes) {
      byte[] body = new byte[size];
      for (int i = 0; i < size; i++) {
        body[i] = (byte) (i * 31 + size);
      }
      sent.add(body);
      channel.basicPublish("", queue, null, body);
    }
    channel.waitForConfirmsOrDie(WAIT_SECONDS * 1000);
    List<Delivery> got = take(channel, queue, sizes.length, true);
    for (int i = 0; i < sizes.length; i++) {
      expect(Arrays.equals(got.get(i).getBody(), sent.get(i)), true, "a body of " + sizes[i] + " bytes unchanged");
    }
  }

  static void transaction(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    channel.txSelect();
    channel.basicPublish("", queue, null, bytes("undone"));
    channel.txRollback();
    channel.basicPublish("", queue, null, bytes("done"));
    Channel other = connection.createChannel();
    expect(left(other, queue), 0L, "visible before the commit");
    channel.txCommit();
    expect(text(other.basicGet(queue, true).getBody()), "done", "committed");
    expect(other.basicGet(queue, true), null, "rolled back");
  }

  static void channelError(Connection connection, Channel channel) throws Exception {
    try {
      channel.queueDeclarePassive(name("missing"));
      throw new AssertionError("a passive declare of a missing queue passed");
    } catch (IOException e) {
      ShutdownSignalException cause = (ShutdownSignalException) e.getCause();
      expect(((AMQP.Channel.Close) cause.getReason()).getReplyCode(), 404, "reply code");
    }
    try {
      channel.basicQos(1);
      throw new AssertionError("a closed channel took a command");
    } catch (AlreadyClosedException expected) {
      declare(connection.createChannel());
    }
  }

  static void prefetchGlobal(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    for (int i = 0; i < 5; i++) {
      publish(channel, queue, String.valueOf(i));
    }
    channel.basicQos(2, true);
    BlockingQueue<Delivery> both = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, false, (t, d) -> both.add(d), (CancelCallback) t -> {});
    channel.basicConsume(queue, false, (t, d) -> both.add(d), (CancelCallback) t -> {});
    int got = 0;
    for (int window = 2; window <= 3; window++) {
      channel.basicQos(window, true);
      for (; got < window; got++) {
        within(both, window + " deliveries");
      }
      expect(left(channel, queue), 5L - window, "held back");
      expect(both.size(), 0, "deliveries beyond the window");
    }
    channel.basicQos(0, true);
    within(both, "all without a window");
    within(both, "all without a window");
  }

  /** The client renews secrets only by its refresh service: this one hands out what that would run by a timer. */
  static void updateSecret(Connection unused, Channel unusedToo) throws Exception {
    BlockingQueue<Callable<Boolean>> actions = new LinkedBlockingQueue<>();
    Connection connection = Scenarios.connect(new CredentialsRefreshService() {
      @Override
      public String register(CredentialsProvider provider, Callable<Boolean> action) {
        actions.add(action);
        return "id";
      }

      @Override
      public void unregister(CredentialsProvider provider, String id) {}

      @Override
      public boolean isApproachingExpiration(Duration left) {
        return false;
      }
    });
    expect(within(actions, "the client's action").call(), true, "update-secret");
    declare(connection.createChannel());
    connection.close();
  }

  static void userId(Connection connection, Channel channel) throws Exception {
    String queue = declare(channel);
    channel.confirmSelect();
    publish(channel, queue, "mine", properties().userId("guest"));
    channel.waitForConfirmsOrDie(WAIT_SECONDS * 1000);
    publish(channel, queue, "his", properties().userId("bob"));
    AMQP.Channel.Close close = closed(channel);
    expect(close.getReplyCode(), 406, "reply code");
    expect(close.getReplyText().contains("user_id property set to 'bob'"), true, close.getReplyText());
    expect(left(connection.createChannel(), queue), 1L, "published");
  }
}
