import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.ReturnedMessage;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.transaction.RabbitTransactionManager;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.transaction.support.TransactionTemplate;

/** Runs an application on Spring AMQP against a broker: Application HOST PORT. Exit 1 when anything is not as it should be. */
public class Application {
  static final int WAIT_SECONDS = 30;

  final RabbitTemplate template;
  final Listeners listeners;
  final RabbitAdmin admin;
  final CachingConnectionFactory transacted;

  Application(AnnotationConfigApplicationContext context) {
    template = context.getBean(RabbitTemplate.class);
    listeners = context.getBean(Listeners.class);
    admin = context.getBean(RabbitAdmin.class);
    transacted = context.getBean("transacted", CachingConnectionFactory.class);
  }

  static void expect(Object got, Object want, String what) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError(what + ": got " + got + ", want " + want);
    }
  }

  static <T> T next(BlockingQueue<T> events, String what) throws InterruptedException {
    T event = events.poll(WAIT_SECONDS, TimeUnit.SECONDS);
    if (event == null) {
      throw new AssertionError("timed out: " + what);
    }
    return event;
  }

  static CorrelationData.Confirm confirm(CorrelationData data) throws Exception {
    return data.getFuture().get(WAIT_SECONDS, TimeUnit.SECONDS);
  }

  /** Every message is confirmed to its own sender and reaches a listener of the container once. */
  void containers() throws Exception {
    for (String key : new String[] {"simple", "direct"}) {
      List<CorrelationData> sent = new ArrayList<>();
      Set<String> want = new TreeSet<>();
      for (int i = 0; i < 500; i++) {
        CorrelationData data = new CorrelationData(key + i);
        template.convertAndSend("spring.work", key, key + i, data);
        sent.add(data);
        want.add(key + i);
      }
      for (CorrelationData data : sent) {
        expect(confirm(data).ack(), true, "confirm of " + data.getId());
        expect(data.getReturned(), null, "return of " + data.getId());
      }
      BlockingQueue<String> events = key.equals("simple") ? listeners.simple : listeners.direct;
      Set<String> got = new TreeSet<>();
      for (int i = 0; i < want.size(); i++) {
        got.add(next(events, "message for the " + key + " container"));
      }
      expect(got, want, key);
      expect(events.size(), 0, "deliveries beyond that");
    }
  }

  void returns() throws Exception {
    CorrelationData data = new CorrelationData("lost");
    template.convertAndSend("spring.work", "nowhere", "lost", data);
    expect(confirm(data).ack(), true, "confirm of an unroutable message");
    ReturnedMessage returned = data.getReturned();
    expect(returned.getReplyCode() + " " + returned.getReplyText() + " " + Listeners.text(returned.getMessage()),
        "312 NO_ROUTE lost", "return");
  }

  void nacks() throws Exception {
    boolean[] want = {true, false};
    for (int i = 0; i < want.length; i++) {
      CorrelationData data = new CorrelationData("full" + i);
      template.convertAndSend("", "spring.full", "full", data);
      expect(confirm(data).ack(), want[i], "confirm " + i + " of a queue with room for one");
    }
  }

  /** Confirms in the other style: a block of publishes, then one wait. */
  void waitForConfirms() {
    expect(template.invoke(operations -> {
      operations.convertAndSend("", "spring.priority", "low", m -> priority(m, 1));
      operations.convertAndSend("", "spring.priority", "high", m -> priority(m, 5));
      return operations.waitForConfirms(WAIT_SECONDS * 1000);
    }), true, "confirms");
    expect(template.receiveAndConvert("spring.priority", WAIT_SECONDS * 1000), "high", "by priority");
    expect(template.receiveAndConvert("spring.priority", WAIT_SECONDS * 1000), "low", "by priority");
  }

  static Message priority(Message message, int priority) {
    message.getMessageProperties().setPriority(priority);
    return message;
  }

  void manualAcknowledgement() throws Exception {
    template.convertAndSend("", "spring.manual", "twice");
    expect(next(listeners.redelivered, "first delivery"), false, "first");
    expect(next(listeners.redelivered, "second delivery"), true, "second");
  }

  void republishingRecoverer() throws Exception {
    template.convertAndSend("spring.work", "failing", "this");
    Message message = next(listeners.failed, "what the recoverer publishes");
    expect(listeners.attempts.get(), 3, "attempts");
    Map<String, Object> headers = message.getMessageProperties().getHeaders();
    expect(Listeners.text(message) + headers.get("x-original-exchange") + headers.get("x-original-routingKey"),
        "this" + "spring.work" + "failing", "republished");
    expect(headers.get("x-exception-message").toString().contains("cannot do this"), true, "exception");
  }

  void deadLetterRetries() throws Exception {
    template.convertAndSend("spring.work", "rejecting", "stubborn");
    Message message = next(listeners.parked, "the parked message");
    expect(listeners.rejections.get(), 4, "deliveries");
    List<Map<String, ?>> deaths = message.getMessageProperties().getXDeathHeader();
    expect(deaths.size(), 2, "queues where it died");
    expect(deaths.get(0).get("reason") + " " + deaths.get(0).get("queue") + " " + deaths.get(0).get("count"),
        "expired spring.waiting 3", "the newest death");
    expect(deaths.get(1).get("reason") + " " + deaths.get(1).get("queue") + " " + deaths.get(1).get("count"),
        "rejected spring.rejecting 3", "the other death");
  }

  void requestAndReply() {
    for (int i = 0; i < 50; i++) {
      expect(template.convertSendAndReceive("", "spring.rpc", "question " + i), "answer to question " + i, "by direct reply-to");
    }
    RabbitTemplate queued = new RabbitTemplate(template.getConnectionFactory());
    queued.setUseTemporaryReplyQueues(true);
    queued.setReplyTimeout(WAIT_SECONDS * 1000);
    expect(queued.convertSendAndReceive("", "spring.rpc", "the last"), "answer to the last", "by a temporary queue");
  }

  void transactions() {
    RabbitTemplate inTransaction = new RabbitTemplate(transacted);
    inTransaction.setChannelTransacted(true);
    TransactionTemplate transaction = new TransactionTemplate(new RabbitTransactionManager(transacted));
    transaction.executeWithoutResult(status -> {
      inTransaction.convertAndSend("", "spring.tx", "undone");
      status.setRollbackOnly();
    });
    transaction.executeWithoutResult(status -> inTransaction.convertAndSend("", "spring.tx", "done"));
    expect(template.receiveAndConvert("spring.tx", WAIT_SECONDS * 1000), "done", "committed");
    expect(template.receiveAndConvert("spring.tx"), null, "rolled back");
  }

  /** The admin declares again what is there already, and sees what is in the queues. */
  void admin() {
    admin.initialize();
    expect(admin.getQueueInfo("spring.full").getMessageCount(), 1L, "messages in the full queue");
    expect(admin.purgeQueue("spring.full"), 1, "purged");
    expect(admin.getQueueInfo("spring.missing"), null, "a queue that is not there");
    expect(admin.deleteQueue("spring.full"), true, "deleted");
  }

  public static void main(String[] args) {
    Beans.host = args[0];
    Beans.port = Integer.parseInt(args[1]);
    try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Beans.class, Listeners.class)) {
      Application application = new Application(context);
      application.containers();
      application.returns();
      application.nacks();
      application.waitForConfirms();
      application.manualAcknowledgement();
      application.republishingRecoverer();
      application.deadLetterRetries();
      application.requestAndReply();
      application.transactions();
      application.admin();
    } catch (Throwable e) {
      e.printStackTrace(System.out);
      System.exit(1);
    }
    System.exit(0);
  }
}
