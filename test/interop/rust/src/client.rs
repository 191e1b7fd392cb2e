//! What the scenarios with lapin share: names, waiting, consuming, asking the test.

use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::*;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ErrorKind};
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::time::Duration;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Done = Result<(), Error>;

pub const WAIT: Duration = Duration::from_secs(10);

/// A connection with its channels. Channels that go out of scope are closed by the client behind the program's
/// back, which an orderly end of the connection does not survive: they are kept until then.
pub struct Client {
    pub connection: Connection,
    channels: Mutex<Vec<Channel>>,
}

impl Client {
    pub async fn connect() -> Result<Client, Error> {
        let args: Vec<String> = std::env::args().collect();
        let uri = format!("amqp://guest:guest@{}:{}/%2f?heartbeat=30", args[1], args[2]);
        let connection = Connection::connect(&uri, ConnectionProperties::default()).await?;
        Ok(Client { connection, channels: Mutex::default() })
    }

    pub async fn channel(&self) -> Result<Channel, Error> {
        let channel = self.connection.create_channel().await?;
        self.channels.lock().expect("no scenario panicked here").push(channel.clone());
        Ok(channel)
    }

    pub async fn close(self) -> Done {
        Ok(within("connection.close-ok", self.connection.close(200, "OK".into())).await??)
    }
}

pub fn name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("interop-rust-{prefix}-{}-{count}", std::process::id())
}

/// Fails a scenario whose event never comes.
pub async fn within<T>(what: &str, event: impl Future<Output = T>) -> Result<T, Error> {
    tokio::time::timeout(WAIT, event).await.map_err(|_| format!("timed out: {what}").into())
}

pub fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

pub fn texts(values: &[&str]) -> AMQPValue {
    AMQPValue::FieldArray(FieldArray::from(values.iter().map(|v| text(v)).collect::<Vec<_>>()))
}

pub fn int(value: i32) -> AMQPValue {
    AMQPValue::LongInt(value)
}

pub fn table(pairs: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in pairs {
        table.insert((*name).into(), value.clone());
    }
    table
}

pub fn with_headers(pairs: &[(&str, AMQPValue)]) -> BasicProperties {
    BasicProperties::default().with_headers(table(pairs))
}

pub fn none() -> BasicProperties {
    BasicProperties::default()
}

/// An exclusive queue with arguments.
pub async fn declare(channel: &Channel, arguments: &[(&str, AMQPValue)]) -> Result<String, Error> {
    let options = QueueDeclareOptions { exclusive: true, ..Default::default() };
    Ok(channel.queue_declare("".into(), options, table(arguments)).await?.name().to_string())
}

pub async fn left(channel: &Channel, queue: &str) -> Result<u32, Error> {
    let options = QueueDeclareOptions { passive: true, ..Default::default() };
    Ok(channel.queue_declare(queue.into(), options, FieldTable::default()).await?.message_count())
}

pub async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> Done {
    Ok(channel.queue_bind(queue.into(), exchange.into(), key.into(), Default::default(), FieldTable::default()).await?)
}

/// Publishes without waiting for a confirm.
pub async fn publish(channel: &Channel, exchange: &str, key: &str, body: &str, properties: BasicProperties) -> Done {
    channel.basic_publish(exchange.into(), key.into(), Default::default(), body.as_bytes(), properties).await?;
    Ok(())
}

pub async fn confirms(channel: &Channel) -> Done {
    Ok(channel.confirm_select(ConfirmSelectOptions::default()).await?)
}

/// Publishes to a queue with `mandatory` and waits for the confirm.
pub async fn confirmed(channel: &Channel, queue: &str, body: &str, properties: BasicProperties) -> Result<Confirmation, Error> {
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let confirm = channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), properties).await?;
    Ok(within("confirm", confirm).await??)
}

pub async fn get(channel: &Channel, queue: &str) -> Result<Option<Delivery>, Error> {
    let options = BasicGetOptions { no_ack: true };
    Ok(channel.basic_get(queue.into(), options).await?.map(|m| m.delivery))
}

pub async fn consume(channel: &Channel, queue: &str, no_ack: bool, arguments: &[(&str, AMQPValue)]) -> Result<Consumer, Error> {
    let options = BasicConsumeOptions { no_ack, ..Default::default() };
    Ok(channel.basic_consume(queue.into(), "".into(), options, table(arguments)).await?)
}

pub async fn cancel(channel: &Channel, consumer: Consumer) -> Done {
    Ok(channel.basic_cancel(consumer.tag(), BasicCancelOptions::default()).await?)
}

pub async fn next(consumer: &mut Consumer) -> Result<Delivery, Error> {
    let what = format!("a message from {}", consumer.queue());
    Ok(within(&what, consumer.next()).await?.ok_or("the consumer was cancelled")??)
}

/// Says that nothing was delivered, which only means something behind an answer of the broker.
pub async fn nothing(consumer: &mut Consumer) -> Done {
    match futures_lite::future::poll_once(consumer.next()).await {
        None => Ok(()),
        Some(more) => Err(format!("delivered beyond what is due: {more:?}").into()),
    }
}

/// Consumes a number of messages.
pub async fn take(channel: &Channel, queue: &str, count: usize) -> Result<Vec<Delivery>, Error> {
    let mut consumer = consume(channel, queue, true, &[]).await?;
    let mut got = Vec::new();
    while got.len() < count {
        got.push(next(&mut consumer).await?);
    }
    cancel(channel, consumer).await?;
    Ok(got)
}

pub async fn take_one(channel: &Channel, queue: &str) -> Result<Delivery, Error> {
    Ok(take(channel, queue, 1).await?.remove(0))
}

pub fn body(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.data).into_owned()
}

pub fn bodies(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(body).collect()
}

pub fn header(delivery: &Delivery, name: &str) -> Option<AMQPValue> {
    delivery.properties.headers().as_ref()?.inner().get(name).cloned()
}

/// The newest entry of x-death.
pub fn death(delivery: &Delivery) -> Result<FieldTable, Error> {
    let deaths = header(delivery, "x-death").ok_or("no x-death")?;
    let newest = deaths.as_array().and_then(|a| a.as_slice().first().cloned()).ok_or("x-death is no array")?;
    Ok(newest.as_field_table().ok_or("x-death holds no table")?.clone())
}

/// The reply code and text of an error that the broker sent.
pub fn reply(error: lapin::Error) -> Result<(u16, String), Error> {
    match error.kind() {
        ErrorKind::ProtocolError(e) => Ok((e.get_id(), e.get_message().to_string())),
        _ => Err(error.into()),
    }
}

/// Has the test do something to the broker, and returns when it is done.
pub fn ask(what: &str) -> Done {
    println!("ask {what}");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
