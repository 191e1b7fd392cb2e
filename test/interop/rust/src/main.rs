//! Runs the interop scenarios with lapin: interop HOST PORT SCENARIO...

mod client;
mod core;
mod extensions;
mod queues;

use client::{Client, Done, Error};
use std::time::Duration;

/// A scenario that waits for an answer without a limit of its own ends here.
const SCENARIO_MAX: Duration = Duration::from_secs(20);

async fn run(name: &str, c: &Client) -> Done {
    match name {
        "confirm-consume-ack" => core::confirm_consume_ack(c).await,
        "nack-requeue-reject" => core::nack_requeue_reject(c).await,
        "get-empty" => core::get_empty(c).await,
        "mandatory-return" => core::mandatory_return(c).await,
        "topic" => core::topic(c).await,
        "headers" => core::headers(c).await,
        "exchange-bind" => core::exchange_bind(c).await,
        "cancel-notify" => core::cancel_notify(c).await,
        "prefetch" => core::prefetch(c).await,
        "prefetch-global" => core::prefetch_global(c).await,
        "large-body" => core::large_body(c).await,
        "channel-error" => core::channel_error(c).await,
        "transaction" => core::transaction(c).await,
        "update-secret" => core::update_secret(c).await,
        "user-id" => core::user_id(c).await,
        "message-ttl" => queues::message_ttl(c).await,
        "queue-expires" => queues::queue_expires(c).await,
        "length-drop-head" => queues::length_drop_head(c).await,
        "length-reject-publish" => queues::length_reject_publish(c).await,
        "length-reject-publish-dlx" => queues::length_reject_publish_dlx(c).await,
        "dead-letter" => queues::dead_letter(c).await,
        "priority-queue" => queues::priority_queue(c).await,
        "quorum-delivery-limit" => queues::quorum_delivery_limit(c).await,
        "stream-offset" => queues::stream_offset(c).await,
        "consumer-timeout" => queues::consumer_timeout(c).await,
        "single-active-consumer" => extensions::single_active_consumer(c).await,
        "consumer-priority" => extensions::consumer_priority(c).await,
        "cc-bcc" => extensions::cc_bcc(c).await,
        "alternate-exchange" => extensions::alternate_exchange(c).await,
        "direct-reply-to" => extensions::direct_reply_to(c).await,
        "consistent-hash" => extensions::consistent_hash(c).await,
        "connection-blocked" => extensions::connection_blocked(c).await,
        "delayed-message" => extensions::delayed_message(c).await,
        _ => Err("no such scenario here".into()),
    }
}

async fn scenario(name: String) -> Done {
    let client = Client::connect().await?;
    run(&name, &client).await?;
    client.close().await
}

#[tokio::main]
async fn main() {
    let mut failed = false;
    for name in std::env::args().skip(3) {
        // A task of its own: a failed assertion in one must not hide the next.
        let task = tokio::spawn(tokio::time::timeout(SCENARIO_MAX, scenario(name.clone())));
        let result: Done = match task.await {
            Ok(Ok(result)) => result,
            Ok(Err(late)) => Err(Error::from(late)),
            Err(panic) => Err(Error::from(panic)),
        };
        match result {
            Ok(()) => println!("ok {name}"),
            Err(error) => {
                failed = true;
                println!("FAIL {name}\n{error}");
            }
        }
    }
    std::process::exit(i32::from(failed));
}
