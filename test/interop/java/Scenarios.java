import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.impl.CredentialsRefreshService;
import com.rabbitmq.client.impl.DefaultCredentialsProvider;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Runs the interop scenarios with the Java client: Scenarios HOST PORT SCENARIO... */
public class Scenarios {
  interface Scenario {
    void run(Connection connection, Channel channel) throws Exception;
  }

  static final ConnectionFactory factory = new ConnectionFactory();
  static final Map<String, Scenario> scenarios = new LinkedHashMap<>();

  static Connection connect() throws Exception {
    return factory.newConnection();
  }

  /** A connection whose login expires, from the client's point of view. */
  static Connection connect(CredentialsRefreshService service) throws Exception {
    ConnectionFactory expiring = factory.clone();
    expiring.setCredentialsRefreshService(service);
    expiring.setCredentialsProvider(new DefaultCredentialsProvider("guest", "guest") {
      @Override
      public Duration getTimeBeforeExpiration() {
        return Duration.ofHours(1);
      }
    });
    return expiring.newConnection();
  }

  static void core() {
    scenarios.put("confirm-consume-ack", Core::confirmConsumeAck);
    scenarios.put("nack-requeue-reject", Core::nackRequeueReject);
    scenarios.put("get-empty", Core::getEmpty);
    scenarios.put("mandatory-return", Core::mandatoryReturn);
    scenarios.put("topic", Core::topic);
    scenarios.put("headers", Core::headers);
    scenarios.put("exchange-bind", Core::exchangeBind);
    scenarios.put("cancel-notify", Core::cancelNotify);
    scenarios.put("prefetch", Core::prefetch);
    scenarios.put("prefetch-global", Core::prefetchGlobal);
    scenarios.put("large-body", Core::largeBody);
    scenarios.put("channel-error", Core::channelError);
    scenarios.put("transaction", Core::transaction);
    scenarios.put("update-secret", Core::updateSecret);
    scenarios.put("user-id", Core::userId);
  }

  static void extensions() {
    scenarios.put("message-ttl", Queues::messageTTL);
    scenarios.put("queue-expires", Queues::queueExpires);
    scenarios.put("length-drop-head", Queues::lengthDropHead);
    scenarios.put("length-reject-publish", Queues::lengthRejectPublish);
    scenarios.put("length-reject-publish-dlx", Queues::lengthRejectPublishDLX);
    scenarios.put("dead-letter", Queues::deadLetter);
    scenarios.put("priority-queue", Queues::priorityQueue);
    scenarios.put("quorum-delivery-limit", Queues::quorumDeliveryLimit);
    scenarios.put("stream-offset", Queues::streamOffset);
    scenarios.put("consumer-timeout", Queues::consumerTimeout);
    scenarios.put("consumer-priority", Extensions::consumerPriority);
    scenarios.put("single-active-consumer", Extensions::singleActiveConsumer);
    scenarios.put("direct-reply-to", Extensions::directReplyTo);
    scenarios.put("connection-blocked", Extensions::connectionBlocked);
    scenarios.put("cc-bcc", Extensions::ccBCC);
    scenarios.put("alternate-exchange", Extensions::alternateExchange);
    scenarios.put("consistent-hash", Extensions::consistentHash);
    scenarios.put("delayed-message", Extensions::delayedMessage);
  }

  public static void main(String[] args) {
    factory.setHost(args[0]);
    factory.setPort(Integer.parseInt(args[1]));
    factory.setAutomaticRecoveryEnabled(false);
    factory.setChannelRpcTimeout((int) Client.WAIT_SECONDS * 1000);
    core();
    extensions();
    int failed = 0;
    for (String name : Arrays.asList(args).subList(2, args.length)) {
      try {
        Connection connection = connect();
        scenarios.get(name).run(connection, connection.createChannel());
        connection.close();
        System.out.println("ok " + name);
      } catch (Throwable e) { // one broken scenario must not hide the next
        failed++;
        System.out.println("FAIL " + name);
        e.printStackTrace(System.out);
      }
    }
    System.exit(failed == 0 ? 0 : 1);
  }
}
