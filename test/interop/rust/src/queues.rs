//! What queue arguments bring, with lapin.

use crate::client::*;
use lapin::message::Delivery;
use lapin::options::*;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, ExchangeKind};
use std::time::Instant;

/// A queue whose dead letters go to the queue dead.
async fn dying(channel: &Channel, dead: &str, arguments: &[(&str, AMQPValue)]) -> Result<String, Error> {
    let mut all = vec![("x-dead-letter-exchange", text("")), ("x-dead-letter-routing-key", text(dead))];
    all.extend_from_slice(arguments);
    declare(channel, &all).await
}

fn expiring(milliseconds: &str) -> BasicProperties {
    none().with_expiration(milliseconds.into())
}

pub async fn message_ttl(c: &Client) -> Done {
    let channel = c.channel().await?;
    let dead = declare(&channel, &[]).await?;
    let by_queue = dying(&channel, &dead, &[("x-message-ttl", int(50))]).await?;
    let by_itself = dying(&channel, &dead, &[]).await?;
    publish(&channel, "", &by_queue, "queue", none()).await?;
    publish(&channel, "", &by_itself, "own", expiring("50")).await?;
    for delivery in take(&channel, &dead, 2).await? {
        let (queue, original) = match body(&delivery).as_str() {
            "queue" => (&by_queue, None),
            _ => (&by_itself, Some(text("50"))),
        };
        let death = death(&delivery)?;
        assert_eq!(death.inner().get("reason"), Some(&text("expired")));
        assert_eq!(death.inner().get("queue"), Some(&text(queue)));
        assert_eq!(death.inner().get("original-expiration"), original.as_ref());
        assert_eq!(*delivery.properties.expiration(), None);
    }
    publish(&channel, "", &by_itself, "at once", expiring("0")).await?;
    assert!(get(&channel, &by_itself).await?.is_none(), "a message with a time to live of 0");
    Ok(())
}

/// Publishing does not keep a queue alive: once it is gone the messages come back.
pub async fn queue_expires(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = name("expires");
    channel.queue_declare(queue.as_str().into(), Default::default(), table(&[("x-expires", int(200))])).await?;
    confirms(&channel).await?;
    assert_eq!(confirmed(&channel, &queue, "x", none()).await?, Confirmation::Ack(None), "gone at once");
    let start = Instant::now();
    while confirmed(&channel, &queue, "x", none()).await?.take_message().is_none() {
        assert!(start.elapsed() < WAIT, "the queue does not expire");
    }
    Ok(())
}

pub async fn length_drop_head(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[("x-max-length", int(2))]).await?;
    let sized = declare(&channel, &[("x-max-length-bytes", int(10))]).await?;
    for body in ["1", "2", "3"] {
        publish(&channel, "", &queue, body, none()).await?;
    }
    for body in ["123456", "abcdef"] {
        publish(&channel, "", &sized, body, none()).await?;
    }
    assert_eq!(bodies(&take(&channel, &queue, 2).await?), ["2", "3"]);
    assert_eq!(bodies(&take(&channel, &sized, 1).await?), ["abcdef"]);
    Ok(())
}

pub async fn length_reject_publish(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[("x-max-length", int(1)), ("x-overflow", text("reject-publish"))]).await?;
    confirms(&channel).await?;
    assert!(confirmed(&channel, &queue, "kept", none()).await?.is_ack());
    assert_eq!(confirmed(&channel, &queue, "over", none()).await?, Confirmation::Nack(None));
    assert_eq!(bodies(&take(&channel, &queue, 1).await?), ["kept"]);
    assert!(confirmed(&channel, &queue, "room again", none()).await?.is_ack());
    Ok(())
}

pub async fn length_reject_publish_dlx(c: &Client) -> Done {
    let channel = c.channel().await?;
    let dead = declare(&channel, &[]).await?;
    let full = [("x-max-length", int(1)), ("x-overflow", text("reject-publish-dlx"))];
    let queue = dying(&channel, &dead, &full).await?;
    confirms(&channel).await?;
    assert!(confirmed(&channel, &queue, "kept", none()).await?.is_ack());
    assert_eq!(confirmed(&channel, &queue, "over", none()).await?, Confirmation::Nack(None));
    let delivery = take_one(&channel, &dead).await?;
    assert_eq!(body(&delivery), "over");
    assert_eq!(death(&delivery)?.inner().get("reason"), Some(&text("maxlen")));
    Ok(())
}

struct Grave<'a> {
    channel: &'a Channel,
    dead: &'a str,
    exchange: &'a str,
    source: &'a str,
}

impl Grave<'_> {
    /// Takes the next dead letter and checks everything that the broker wrote on it.
    async fn died(&self, text_of: &str, reason: &str, count: i64) -> Result<Delivery, Error> {
        let delivery = take_one(self.channel, self.dead).await?;
        let from = (body(&delivery), delivery.exchange.as_str(), delivery.routing_key.as_str());
        assert_eq!(from, (text_of.into(), self.exchange, "rerouted"), "where it came from");
        let death = death(&delivery)?;
        assert_eq!(death.inner().get("reason"), Some(&text(reason)));
        assert_eq!(death.inner().get("queue"), Some(&text(self.source)));
        assert_eq!(death.inner().get("exchange"), Some(&text("")));
        assert_eq!(death.inner().get("count"), Some(&AMQPValue::LongLongInt(count)));
        assert_eq!(death.inner().get("routing-keys"), Some(&texts(&[self.source])));
        assert!(matches!(death.inner().get("time"), Some(AMQPValue::Timestamp(_))), "time of death");
        for when in ["first", "last"] {
            for (what, want) in [("reason", reason), ("queue", self.source), ("exchange", "")] {
                let name = format!("x-{when}-death-{what}");
                assert_eq!(header(&delivery, &name), Some(text(want)), "{name}");
            }
        }
        Ok(delivery)
    }

    async fn reject(&self) -> Done {
        let got = self.channel.basic_get(self.source.into(), Default::default()).await?.ok_or("empty")?;
        got.reject(BasicRejectOptions { requeue: false }).await?;
        Ok(())
    }
}

/// A rejected, an expired and an overflowing message each end in the dead-letter queue with their reason.
pub async fn dead_letter(c: &Client) -> Done {
    let channel = c.channel().await?;
    let dead = declare(&channel, &[]).await?;
    let exchange = name("dlx");
    let options = ExchangeDeclareOptions { auto_delete: true, ..Default::default() };
    channel.exchange_declare(exchange.as_str().into(), ExchangeKind::Fanout, options, FieldTable::default()).await?;
    bind(&channel, &dead, &exchange, "").await?;
    let source = declare(&channel, &[
        ("x-dead-letter-exchange", text(&exchange)),
        ("x-dead-letter-routing-key", text("rerouted")),
        ("x-max-length", int(1)),
    ])
    .await?;
    let grave = Grave { channel: &channel, dead: &dead, exchange: &exchange, source: &source };
    publish(&channel, "", &source, "1", none()).await?;
    grave.reject().await?;
    let again = grave.died("1", "rejected", 1).await?;
    publish(&channel, "", &source, "1", again.properties.clone()).await?;
    grave.reject().await?;
    grave.died("1", "rejected", 2).await?;
    publish(&channel, "", &source, "2", expiring("20")).await?;
    grave.died("2", "expired", 1).await?;
    publish(&channel, "", &source, "3", none()).await?;
    publish(&channel, "", &source, "4", none()).await?;
    grave.died("3", "maxlen", 1).await?;
    Ok(())
}

pub async fn priority_queue(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[("x-max-priority", int(5))]).await?;
    for priority in [1u8, 5, 0, 3, 9, 1] {
        let properties = if priority == 0 { none() } else { none().with_priority(priority) };
        publish(&channel, "", &queue, &priority.to_string(), properties).await?;
    }
    assert_eq!(bodies(&take(&channel, &queue, 6).await?), ["5", "9", "3", "1", "1", "0"]);
    Ok(())
}

pub async fn quorum_delivery_limit(c: &Client) -> Done {
    let channel = c.channel().await?;
    let dead = declare(&channel, &[]).await?;
    let queue = name("quorum");
    let arguments = table(&[
        ("x-queue-type", text("quorum")),
        ("x-delivery-limit", int(2)),
        ("x-dead-letter-exchange", text("")),
        ("x-dead-letter-routing-key", text(&dead)),
    ]);
    channel.queue_declare(queue.as_str().into(), QueueDeclareOptions::durable(), arguments).await?;
    confirms(&channel).await?;
    assert!(confirmed(&channel, &queue, "poison", none()).await?.is_ack());
    let mut consumer = consume(&channel, &queue, false, &[]).await?;
    for count in 0..3 {
        let delivery = next(&mut consumer).await?;
        let counted = header(&delivery, "x-delivery-count").unwrap_or(AMQPValue::LongLongInt(0));
        assert_eq!((counted, delivery.redelivered), (AMQPValue::LongLongInt(count), count > 0));
        delivery.nack(BasicNackOptions { requeue: true, ..Default::default() }).await?;
    }
    let death = death(&take_one(&channel, &dead).await?)?;
    assert_eq!(death.inner().get("reason"), Some(&text("delivery_limit")));
    assert_eq!(death.inner().get("queue"), Some(&text(&queue)));
    nothing(&mut consumer).await?;
    channel.queue_delete(queue.into(), Default::default()).await?;
    Ok(())
}

pub async fn stream_offset(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = name("stream");
    let arguments = table(&[("x-queue-type", text("stream"))]);
    channel.queue_declare(queue.as_str().into(), QueueDeclareOptions::durable(), arguments).await?;
    confirms(&channel).await?;
    for i in 0..5 {
        assert!(confirmed(&channel, &queue, &i.to_string(), none()).await?.is_ack());
    }
    channel.basic_qos(10, Default::default()).await?;
    for (offset, first) in [(text("first"), 0), (int(3), 3), (text("1h"), 0)] {
        let mut consumer = consume(&channel, &queue, false, &[("x-stream-offset", offset)]).await?;
        for i in first..5 {
            let delivery = next(&mut consumer).await?;
            read(&delivery, i);
            delivery.ack(Default::default()).await?;
        }
        cancel(&channel, consumer).await?;
    }
    let mut consumer = consume(&channel, &queue, false, &[("x-stream-offset", text("next"))]).await?;
    assert!(confirmed(&channel, &queue, "5", none()).await?.is_ack());
    read(&next(&mut consumer).await?, 5);
    channel.queue_delete(queue.into(), Default::default()).await?;
    Ok(())
}

fn read(delivery: &Delivery, offset: i64) {
    assert_eq!(body(delivery), offset.to_string());
    assert_eq!(header(delivery, "x-stream-offset"), Some(AMQPValue::LongLongInt(offset)));
}

pub async fn consumer_timeout(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[("x-consumer-timeout", int(200))]).await?;
    publish(&channel, "", &queue, "forgotten", none()).await?;
    let mut consumer = consume(&channel, &queue, false, &[]).await?;
    next(&mut consumer).await?;
    let closed = next(&mut consumer).await.err().ok_or("a second message")?;
    let (code, words) = reply(*closed.downcast::<lapin::Error>()?)?;
    assert!(code == 406 && words.contains("timed out. Timeout value used: 200 ms"), "{code} {words}");
    let back = get(&c.channel().await?, &queue).await?.ok_or("not back in the queue")?;
    assert_eq!((body(&back), back.redelivered), ("forgotten".into(), true));
    Ok(())
}
