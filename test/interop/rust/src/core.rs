//! The core of the protocol with lapin.

use crate::client::*;
use futures_lite::StreamExt;
use lapin::options::*;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Confirmation, ExchangeKind};

pub async fn confirm_consume_ack(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    confirms(&channel).await?;
    let headers = table(&[
        ("text", text("ü")),
        ("int", int(-7)),
        ("byte", AMQPValue::ShortShortInt(-1)),
        ("unsigned", AMQPValue::LongUInt(1 << 31)),
        ("big", AMQPValue::LongLongInt(1 << 40)),
        ("real", AMQPValue::Double(0.5)),
        ("flag", AMQPValue::Boolean(true)),
        ("time", AMQPValue::Timestamp(1_700_000_000)),
        ("nothing", AMQPValue::Void),
        ("list", texts(&["one", "two"])),
        ("table", AMQPValue::FieldTable(table(&[("in", text("side"))]))),
    ]);
    let properties = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_content_encoding("utf-8".into())
        .with_headers(headers)
        .with_delivery_mode(2)
        .with_priority(3)
        .with_correlation_id("c".into())
        .with_reply_to("r".into())
        .with_expiration("60000".into())
        .with_message_id("m".into())
        .with_timestamp(1_700_000_000)
        .with_type("t".into())
        .with_user_id("guest".into())
        .with_app_id("a".into());
    let want: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    for body in &want {
        publish(&channel, "", &queue, body, properties.clone()).await?;
    }
    assert_eq!(within("confirms", channel.wait_for_confirms()).await??.len(), 0, "returns");
    let mut consumer = consume(&channel, &queue, false, &[]).await?;
    let mut got = Vec::new();
    while got.len() < want.len() {
        got.push(next(&mut consumer).await?);
    }
    assert_eq!(bodies(&got), want, "bodies in order");
    assert_eq!(got[0].properties, properties);
    got[99].ack(BasicAckOptions { multiple: true }).await?;
    cancel(&channel, consumer).await?;
    assert_eq!(left(&channel, &queue).await?, 0, "left after the ack");
    Ok(())
}

pub async fn nack_requeue_reject(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    publish(&channel, "", &queue, "one", none()).await?;
    publish(&channel, "", &queue, "two", none()).await?;
    let first = channel.basic_get(queue.as_str().into(), Default::default()).await?.ok_or("empty")?;
    assert_eq!((body(&first), first.redelivered), ("one".into(), false), "first get");
    first.nack(BasicNackOptions { requeue: true, ..Default::default() }).await?;
    let again = channel.basic_get(queue.as_str().into(), Default::default()).await?.ok_or("empty")?;
    assert_eq!((body(&again), again.redelivered), ("one".into(), true), "requeued to its place");
    again.reject(BasicRejectOptions { requeue: false }).await?;
    let last = channel.basic_get(queue.as_str().into(), BasicGetOptions { no_ack: true }).await?.ok_or("empty")?;
    assert_eq!((body(&last), last.redelivered, last.message_count), ("two".into(), false, 0), "after the reject");
    Ok(())
}

pub async fn get_empty(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    assert!(get(&channel, &queue).await?.is_none());
    Ok(())
}

pub async fn mandatory_return(c: &Client) -> Done {
    let channel = c.channel().await?;
    confirms(&channel).await?;
    match confirmed(&channel, &name("nowhere"), "lost", none()).await? {
        Confirmation::Ack(Some(returned)) => {
            assert_eq!((returned.reply_code, body(&returned)), (312, "lost".into()));
            Ok(())
        }
        other => Err(format!("{other:?}").into()),
    }
}

type Headers<'a> = &'a [(&'a str, AMQPValue)];

async fn routed(c: &Client, kind: ExchangeKind, bindings: &[(&str, Headers<'_>)], publishes: &[(&str, &str, Headers<'_>)], want: &[&str]) -> Done {
    let channel = c.channel().await?;
    let exchange = name("routed");
    channel.exchange_declare(exchange.as_str().into(), kind, Default::default(), FieldTable::default()).await?;
    let queue = declare(&channel, &[]).await?;
    for (key, arguments) in bindings {
        let arguments = table(arguments);
        channel.queue_bind(queue.as_str().into(), exchange.as_str().into(), (*key).into(), Default::default(), arguments).await?;
    }
    for (body, key, headers) in publishes {
        publish(&channel, &exchange, key, body, with_headers(headers)).await?;
    }
    assert_eq!(bodies(&take(&channel, &queue, want.len()).await?), want);
    assert_eq!(left(&channel, &queue).await?, 0, "routed beyond that");
    Ok(channel.exchange_delete(exchange.as_str().into(), Default::default()).await?)
}

pub async fn topic(c: &Client) -> Done {
    let publishes = [("1", "a.b.c"), ("no", "a.b.d"), ("2", "x"), ("3", "x.y.z"), ("no", "a.c")];
    let publishes: Vec<(&str, &str, Headers)> = publishes.iter().map(|(b, k)| (*b, *k, &[] as Headers)).collect();
    routed(c, ExchangeKind::Topic, &[("a.*.c", &[]), ("x.#", &[])], &publishes, &["1", "2", "3"]).await
}

pub async fn headers(c: &Client) -> Done {
    let yes = AMQPValue::Boolean(true);
    let all = [("x-match", text("all")), ("n", int(1)), ("s", text("v"))];
    let any = [("x-match", text("any")), ("p", text("q")), ("r", yes.clone())];
    let both = [("n", int(1)), ("s", text("v")), ("more", int(2))];
    let (one, right, wrong) = ([("n", int(1))], [("r", yes)], [("r", AMQPValue::Boolean(false))]);
    let publishes: [(&str, &str, Headers); 5] =
        [("1", "", &both), ("no", "", &one), ("2", "", &right), ("no", "", &wrong), ("no", "", &[])];
    routed(c, ExchangeKind::Headers, &[("", &all), ("", &any)], &publishes, &["1", "2"]).await
}

pub async fn exchange_bind(c: &Client) -> Done {
    let channel = c.channel().await?;
    let (source, target) = (name("source"), name("target"));
    let none = FieldTable::default;
    channel.exchange_declare(source.as_str().into(), ExchangeKind::Direct, Default::default(), none()).await?;
    channel.exchange_declare(target.as_str().into(), ExchangeKind::Fanout, Default::default(), none()).await?;
    let queue = declare(&channel, &[]).await?;
    channel.exchange_bind(target.as_str().into(), source.as_str().into(), "k".into(), Default::default(), none()).await?;
    bind(&channel, &queue, &target, "").await?;
    publish(&channel, &source, "k", "through", BasicProperties::default()).await?;
    publish(&channel, &source, "other", "no", BasicProperties::default()).await?;
    assert_eq!(bodies(&take(&channel, &queue, 1).await?), ["through"]);
    channel.exchange_unbind(target.as_str().into(), source.as_str().into(), "k".into(), Default::default(), none()).await?;
    publish(&channel, &source, "k", "no", BasicProperties::default()).await?;
    assert_eq!(left(&channel, &queue).await?, 0, "after the unbind");
    channel.exchange_delete(source.into(), Default::default()).await?;
    Ok(channel.exchange_delete(target.into(), Default::default()).await?)
}

pub async fn cancel_notify(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = name("cancel");
    channel.queue_declare(queue.as_str().into(), Default::default(), FieldTable::default()).await?;
    let mut consumer = consume(&channel, &queue, false, &[]).await?;
    c.channel().await?.queue_delete(queue.as_str().into(), Default::default()).await?;
    assert!(within("basic.cancel", consumer.next()).await?.is_none(), "the end of the consumer");
    left(&channel, &declare(&channel, &[]).await?).await?; // the channel goes on
    Ok(())
}

pub async fn prefetch(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    channel.basic_qos(2, Default::default()).await?;
    for i in 0..5 {
        publish(&channel, "", &queue, &i.to_string(), none()).await?;
    }
    let mut consumer = consume(&channel, &queue, false, &[]).await?;
    let mut got = vec![next(&mut consumer).await?, next(&mut consumer).await?];
    // The count travels behind every delivery made so far: three wait, two are out.
    assert_eq!(left(&channel, &queue).await?, 3, "held back by prefetch 2");
    nothing(&mut consumer).await?;
    got[1].ack(BasicAckOptions { multiple: true }).await?;
    while got.len() < 5 {
        let delivery = next(&mut consumer).await?;
        delivery.ack(BasicAckOptions::default()).await?;
        got.push(delivery);
    }
    assert_eq!(bodies(&got), ["0", "1", "2", "3", "4"]);
    Ok(())
}

pub async fn prefetch_global(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    for i in 0..5 {
        publish(&channel, "", &queue, &i.to_string(), none()).await?;
    }
    let all = BasicQosOptions { global: true };
    channel.basic_qos(2, all).await?;
    let one = consume(&channel, &queue, false, &[]).await?;
    let two = consume(&channel, &queue, false, &[]).await?;
    let mut both = futures_lite::stream::or(one, two);
    let mut got = 0;
    for window in [2, 3] {
        channel.basic_qos(window, all).await?;
        while got < window {
            within("deliveries", both.next()).await?.ok_or("cancelled")??;
            got += 1;
        }
        assert_eq!(left(&channel, &queue).await?, u32::from(5 - window), "held back");
        assert!(futures_lite::future::poll_once(both.next()).await.is_none(), "deliveries beyond the window");
    }
    channel.basic_qos(0, all).await?;
    for _ in 0..2 {
        within("all without a window", both.next()).await?.ok_or("cancelled")??;
    }
    Ok(())
}

pub async fn large_body(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    confirms(&channel).await?;
    let sizes = [0usize, 1, 4088, 4089, 131_064, 131_065, 1 << 20];
    let sent: Vec<Vec<u8>> = sizes.iter().map(|size| (0..*size).map(|i| (i * 31 + size) as u8).collect()).collect();
    for body in &sent {
        let confirm = channel.basic_publish("".into(), queue.as_str().into(), Default::default(), body, none()).await?;
        assert!(within("confirm", confirm).await??.is_ack());
    }
    for (delivery, body) in take(&channel, &queue, sent.len()).await?.iter().zip(&sent) {
        assert!(delivery.data == *body, "a body of {} bytes came back changed", body.len());
    }
    Ok(())
}

pub async fn channel_error(c: &Client) -> Done {
    let channel = c.channel().await?;
    let options = QueueDeclareOptions { passive: true, ..Default::default() };
    match channel.queue_declare(name("missing").into(), options, FieldTable::default()).await {
        Ok(_) => return Err("a passive declare of a missing queue passed".into()),
        Err(error) => assert_eq!(reply(error)?.0, 404),
    }
    declare(&c.channel().await?, &[]).await?;
    Ok(())
}

pub async fn transaction(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    channel.tx_select().await?;
    publish(&channel, "", &queue, "undone", none()).await?;
    channel.tx_rollback().await?;
    publish(&channel, "", &queue, "done", none()).await?;
    let other = c.channel().await?;
    assert!(get(&other, &queue).await?.is_none(), "visible before the commit");
    channel.tx_commit().await?;
    assert_eq!(get(&other, &queue).await?.map(|d| body(&d)), Some("done".into()), "committed");
    assert!(get(&other, &queue).await?.is_none(), "rolled back");
    Ok(())
}

pub async fn update_secret(c: &Client) -> Done {
    within("update-secret-ok", c.connection.update_secret("guest".into(), "renewed".into())).await??;
    declare(&c.channel().await?, &[]).await?;
    Ok(())
}

pub async fn user_id(c: &Client) -> Done {
    let channel = c.channel().await?;
    let queue = declare(&channel, &[]).await?;
    confirms(&channel).await?;
    let by = |user: &str| BasicProperties::default().with_user_id(user.into());
    assert_eq!(confirmed(&channel, &queue, "mine", by("guest")).await?, Confirmation::Ack(None));
    let confirm = channel.basic_publish("".into(), queue.as_str().into(), Default::default(), b"his", by("bob")).await?;
    match within("channel.close", confirm).await? {
        Ok(other) => return Err(format!("another's user id was taken: {other:?}").into()),
        Err(error) => {
            let (code, words) = reply(error)?;
            assert!(code == 406 && words.contains("user_id property set to 'bob'"), "{code} {words}");
        }
    }
    assert_eq!(left(&c.channel().await?, &queue).await?, 1, "published");
    Ok(())
}
