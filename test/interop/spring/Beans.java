import org.aopalliance.intercept.MethodInterceptor;
import org.springframework.amqp.core.AcknowledgeMode;
import org.springframework.amqp.core.Binding;
import org.springframework.amqp.core.BindingBuilder;
import org.springframework.amqp.core.Declarables;
import org.springframework.amqp.core.DirectExchange;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.rabbit.annotation.EnableRabbit;
import org.springframework.amqp.rabbit.config.DirectRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.config.RetryInterceptorBuilder;
import org.springframework.amqp.rabbit.config.SimpleRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.retry.RepublishMessageRecoverer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;

/** What an application on Spring AMQP configures: connections, containers, retries, and what is declared at the start. */
@Configuration
@EnableRabbit
public class Beans {
  static String host;
  static int port;

  /** Milliseconds that a rejected message waits before it is tried again. */
  static final int WAIT_MS = 50;

  @Bean
  @Primary
  CachingConnectionFactory connectionFactory() {
    CachingConnectionFactory factory = new CachingConnectionFactory(host, port);
    factory.setPublisherConfirmType(CachingConnectionFactory.ConfirmType.CORRELATED);
    factory.setPublisherReturns(true);
    return factory;
  }

  /** Transactions need channels without confirms, hence a factory of their own. */
  @Bean
  CachingConnectionFactory transacted() {
    return new CachingConnectionFactory(host, port);
  }

  @Bean
  RabbitAdmin admin(CachingConnectionFactory connectionFactory) {
    return new RabbitAdmin(connectionFactory);
  }

  @Bean
  RabbitTemplate template(CachingConnectionFactory connectionFactory) {
    RabbitTemplate template = new RabbitTemplate(connectionFactory);
    template.setMandatory(true);
    template.setReplyTimeout(Application.WAIT_SECONDS * 1000);
    return template;
  }

  @Bean
  SimpleRabbitListenerContainerFactory simple(CachingConnectionFactory connectionFactory) {
    SimpleRabbitListenerContainerFactory factory = new SimpleRabbitListenerContainerFactory();
    factory.setConnectionFactory(connectionFactory);
    factory.setConcurrentConsumers(2);
    factory.setMaxConcurrentConsumers(4);
    factory.setPrefetchCount(10);
    factory.setDefaultRequeueRejected(false);
    return factory;
  }

  @Bean
  DirectRabbitListenerContainerFactory direct(CachingConnectionFactory connectionFactory) {
    DirectRabbitListenerContainerFactory factory = new DirectRabbitListenerContainerFactory();
    factory.setConnectionFactory(connectionFactory);
    factory.setConsumersPerQueue(3);
    factory.setDefaultRequeueRejected(false);
    return factory;
  }

  @Bean
  SimpleRabbitListenerContainerFactory manual(CachingConnectionFactory connectionFactory) {
    SimpleRabbitListenerContainerFactory factory = new SimpleRabbitListenerContainerFactory();
    factory.setConnectionFactory(connectionFactory);
    factory.setAcknowledgeMode(AcknowledgeMode.MANUAL);
    return factory;
  }

  /** Three attempts within the application; then the message goes to another exchange with the exception. */
  @Bean
  SimpleRabbitListenerContainerFactory retrying(CachingConnectionFactory connectionFactory, RabbitTemplate template) {
    MethodInterceptor advice = RetryInterceptorBuilder.stateless().maxRetries(2).backOffOptions(10, 1.0, 10)
        .recoverer(new RepublishMessageRecoverer(template, "spring.errors", "failed")).build();
    SimpleRabbitListenerContainerFactory factory = new SimpleRabbitListenerContainerFactory();
    factory.setConnectionFactory(connectionFactory);
    factory.setAdviceChain(advice);
    return factory;
  }

  private static Binding bound(Queue queue, DirectExchange exchange, String key) {
    return BindingBuilder.bind(queue).to(exchange).with(key);
  }

  @Bean
  Declarables topology() {
    DirectExchange work = new DirectExchange("spring.work");
    DirectExchange errors = new DirectExchange("spring.errors");
    DirectExchange dead = new DirectExchange("spring.dead");
    Queue simple = QueueBuilder.durable("spring.simple").build();
    Queue direct = QueueBuilder.durable("spring.direct").build();
    Queue failing = QueueBuilder.durable("spring.failing").build();
    Queue failed = QueueBuilder.durable("spring.failed").build();
    Queue rejecting = QueueBuilder.durable("spring.rejecting").deadLetterExchange("spring.dead")
        .deadLetterRoutingKey("wait").build();
    Queue waiting = QueueBuilder.durable("spring.waiting").ttl(WAIT_MS).deadLetterExchange("spring.work")
        .deadLetterRoutingKey("rejecting").build();
    Queue parked = QueueBuilder.durable("spring.parked").build();
    Queue full = QueueBuilder.durable("spring.full").maxLength(1L)
        .overflow(QueueBuilder.Overflow.rejectPublish).build();
    return new Declarables(work, errors, dead, simple, direct, failing, failed, rejecting, waiting, parked, full,
        QueueBuilder.durable("spring.rpc").build(), QueueBuilder.durable("spring.manual").build(),
        QueueBuilder.durable("spring.tx").build(),
        QueueBuilder.durable("spring.priority").maxPriority(5).singleActiveConsumer().build(),
        bound(simple, work, "simple"), bound(direct, work, "direct"), bound(failing, work, "failing"),
        bound(rejecting, work, "rejecting"), bound(failed, errors, "failed"), bound(waiting, dead, "wait"),
        bound(parked, dead, "park"));
  }
}
