//! Routing beyond the four exchange types, who gets what, and alarms, with lapin.

use crate::client::*;
use futures_lite::{Stream, StreamExt};
use lapin::options::*;
use lapin::types::FieldTable;
use lapin::{Confirmation, Event, ExchangeKind};
use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

pub async fn consumer_priority(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    channel.basic_qos(2, Default::default()).await?;
    let mut low = consume(&channel, &queue, false, &[]).await?;
    let mut high = consume(&channel, &queue, false, &[("x-priority", int(10))]).await?;
    for body in ["0", "1", "2"] {
        publish(&channel, "", &queue, body, none()).await?;
    }
    let first = [next(&mut high).await?, next(&mut high).await?];
    assert_eq!(bodies(&first), ["0", "1"], "the higher first");
    assert_eq!(body(&next(&mut low).await?), "2", "the lower when it is full");
    Ok(())
}

pub async fn single_active_consumer(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[("x-single-active-consumer", true.into())]).await?;
    let mut first = consume(&channel, &queue, true, &[]).await?;
    let mut second = consume(&channel, &queue, true, &[]).await?;
    for body in ["1", "2"] {
        publish(&channel, "", &queue, body, none()).await?;
    }
    let got = [next(&mut first).await?, next(&mut first).await?];
    assert_eq!(bodies(&got), ["1", "2"], "the active one gets both");
    cancel(&channel, first).await?;
    publish(&channel, "", &queue, "3", none()).await?;
    assert_eq!(body(&next(&mut second).await?), "3", "the next one takes over");
    Ok(())
}

pub async fn direct_reply_to(c: &Client) -> Done {
    let channel = c.channel().await?;
    let service = declare(&channel, &[]).await?;
    let mut replies = consume(&channel, "amq.rabbitmq.reply-to", true, &[]).await?;
    let request = none().with_reply_to("amq.rabbitmq.reply-to".into()).with_correlation_id("42".into());
    publish(&channel, "", &service, "question", request).await?;
    assert_eq!(left(&channel, &service).await?, 1, "the request");
    let other = c.channel().await?;
    let request = get(&other, &service).await?.ok_or("no request")?;
    let address = request.properties.reply_to().clone().ok_or("no reply-to")?;
    assert!(address.as_str().starts_with("amq.rabbitmq.reply-to."), "{address}");
    let same = request.properties.correlation_id().clone().ok_or("no correlation id")?;
    publish(&other, "", address.as_str(), "answer", none().with_correlation_id(same)).await?;
    let reply = next(&mut replies).await?;
    assert_eq!((body(&reply), reply.properties.correlation_id().clone()), ("answer".into(), Some("42".into())));
    Ok(())
}

/// The next event but for the one that says that the connection is there, which may come late.
async fn alarm(events: &mut (impl Stream<Item = Event> + Unpin)) -> Result<Event, Error> {
    loop {
        match within("an event of the connection", events.next()).await?.ok_or("no more events")? {
            Event::Connected => {}
            event => return Ok(event),
        }
    }
}

/// This client writes nothing at all while it is blocked: a publish ends when the alarm does.
pub async fn connection_blocked(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = name("blocked");
    channel.queue_declare(queue.as_str().into(), Default::default(), FieldTable::default()).await?;
    let publisher = Client::connect().await?;
    let mut events = pin!(publisher.connection.events_listener());
    let sender = publisher.channel().await?;
    publish(&sender, "", &queue, "before", none()).await?;
    assert_eq!(left(&sender, &queue).await?, 1, "before");
    ask("alarm-on")?;
    match alarm(&mut events).await? {
        Event::ConnectionBlocked(reason) => assert_eq!(reason, "low on disk"),
        other => return Err(format!("{other:?}").into()),
    }
    let held = tokio::spawn({
        let (sender, queue) = (sender.clone(), queue.clone());
        async move { publish(&sender, "", &queue, "held", none()).await }
    });
    assert_eq!(get(&channel, &queue).await?.map(|d| body(&d)), Some("before".into()), "read during the alarm");
    assert!(get(&channel, &queue).await?.is_none(), "nothing of the blocked connection");
    ask("alarm-off")?;
    match alarm(&mut events).await? {
        Event::ConnectionUnblocked => {}
        other => return Err(format!("{other:?}").into()),
    }
    within("the publish", held).await???;
    assert_eq!(body(&take_one(&channel, &queue).await?), "held", "after the alarm");
    channel.queue_delete(queue.into(), Default::default()).await?;
    publisher.close().await
}

pub async fn cc_bcc(c: &Client) -> Done {
    let channel = c.channel().await?;
    let (to, copy, hidden) = (declare(&channel, &[]).await?, declare(&channel, &[]).await?, declare(&channel, &[]).await?);
    let sent = with_headers(&[("CC", texts(&[&copy])), ("BCC", texts(&[&hidden])), ("n", int(1))]);
    publish(&channel, "", &to, "x", sent).await?;
    for queue in [&to, &copy, &hidden] {
        let delivery = take_one(&channel, queue).await?;
        assert_eq!((body(&delivery), delivery.routing_key.as_str()), ("x".into(), to.as_str()));
        assert_eq!(delivery.properties, with_headers(&[("CC", texts(&[&copy])), ("n", int(1))]));
    }
    Ok(())
}

pub async fn alternate_exchange(c: &Client) -> Done {
    let channel = c.channel().await?;
    let (other, exchange) = (name("other"), name("main"));
    let arguments = table(&[("alternate-exchange", text(&other))]);
    channel.exchange_declare(other.as_str().into(), ExchangeKind::Fanout, Default::default(), FieldTable::default()).await?;
    channel.exchange_declare(exchange.as_str().into(), ExchangeKind::Direct, Default::default(), arguments).await?;
    let queue = declare(&channel, &[]).await?;
    bind(&channel, &queue, &other, "").await?;
    confirms(&channel).await?;
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let confirm = channel.basic_publish(exchange.as_str().into(), "nowhere".into(), options, b"x", none()).await?;
    assert_eq!(within("confirm", confirm).await??, Confirmation::Ack(None), "no return");
    let delivery = take_one(&channel, &queue).await?;
    let from = (body(&delivery), delivery.exchange.as_str(), delivery.routing_key.as_str());
    assert_eq!(from, ("x".into(), exchange.as_str(), "nowhere"), "by the alternate exchange");
    channel.exchange_delete(exchange.into(), Default::default()).await?;
    Ok(channel.exchange_delete(other.into(), Default::default()).await?)
}

pub async fn consistent_hash(c: &Client) -> Done {
    let channel = c.channel().await?;
    let exchange = name("hash");
    let kind = ExchangeKind::Custom("x-consistent-hash".into());
    channel.exchange_declare(exchange.as_str().into(), kind, Default::default(), FieldTable::default()).await?;
    let (light, heavy) = (declare(&channel, &[]).await?, declare(&channel, &[]).await?);
    bind(&channel, &light, &exchange, "1").await?;
    bind(&channel, &heavy, &exchange, "3").await?;
    for i in 0..800 {
        let key = format!("key-{}", i % 400);
        publish(&channel, &exchange, &key, &key, none()).await?;
    }
    let (few, many) = (left(&channel, &light).await?, left(&channel, &heavy).await?);
    assert!(few + many == 800 && 0 < few && few < many, "shares {few} and {many}");
    let got: HashSet<String> = bodies(&take(&channel, &light, few as usize).await?).into_iter().collect();
    assert_eq!(got.len() * 2, few as usize, "both of a key's messages are in one queue");
    Ok(channel.exchange_delete(exchange.into(), Default::default()).await?)
}

pub async fn delayed_message(c: &Client) -> Done {
    let channel = c.channel().await?;
    let exchange = name("delayed");
    let kind = ExchangeKind::Custom("x-delayed-message".into());
    let arguments = table(&[("x-delayed-type", text("direct"))]);
    channel.exchange_declare(exchange.as_str().into(), kind, Default::default(), arguments).await?;
    let queue = declare(&channel, &[]).await?;
    bind(&channel, &queue, &exchange, "k").await?;
    let started = Instant::now();
    publish(&channel, &exchange, "k", "later", with_headers(&[("x-delay", int(300))])).await?;
    publish(&channel, &exchange, "k", "now", none()).await?;
    let got = take(&channel, &queue, 2).await?;
    assert_eq!(bodies(&got), ["now", "later"], "order");
    let delay = header(&got[1], "x-delay").ok_or("no x-delay")?;
    assert_eq!(delay.as_long_int().map(i64::from).or(delay.as_long_long_int()), Some(-300), "x-delay");
    assert!(started.elapsed() >= Duration::from_millis(300), "too early");
    Ok(channel.exchange_delete(exchange.into(), Default::default()).await?)
}
