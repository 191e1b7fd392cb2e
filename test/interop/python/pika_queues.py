"""What queue arguments bring, with pika."""

import datetime

import pika

from pika_client import bodies, collect, left, pump, take
from runner import WAIT_SECONDS, expect, name, wait_until


def dying(channel, dead, **arguments):
    """Declares a queue whose dead letters go to the queue dead."""
    arguments = {"x-" + k.replace("_", "-"): v for k, v in arguments.items()}
    arguments.update({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    queue = name("dying")
    channel.queue_declare(queue, exclusive=True, arguments=arguments)
    return queue


def message_ttl(connection, channel):
    dead = name("dead")
    channel.queue_declare(dead, exclusive=True)
    by_queue, by_itself = dying(channel, dead, message_ttl=50), dying(channel, dead)
    channel.basic_publish("", by_queue, b"queue")
    channel.basic_publish("", by_itself, b"own", pika.BasicProperties(expiration="50"))
    got = {b: p for _, p, b in take(connection, channel, dead, 2)}
    for body, queue, expiration in ((b"queue", by_queue, None), (b"own", by_itself, "50")):
        death = got[body].headers["x-death"][0]
        expect((death["reason"], death["queue"], death.get("original-expiration"), got[body].expiration),
               ("expired", queue, expiration, None), "death of %r" % body)
    channel.basic_publish("", by_itself, b"at once", pika.BasicProperties(expiration="0"))
    expect(channel.basic_get(by_itself)[0], None, "a message with a time to live of 0")


def queue_expires(connection, channel):
    """Publishing does not keep a queue alive: once it is gone the messages come back."""
    queue = name("expires")
    channel.queue_declare(queue, arguments={"x-expires": 200})
    channel.confirm_delivery()
    gone = []

    def publish():
        try:
            channel.basic_publish("", queue, b"x", mandatory=True)
            connection.sleep(0.02)
        except pika.exceptions.UnroutableError:
            gone.append(True)

    publish()
    expect(gone, [], "gone at once")
    wait_until(lambda: gone, publish, "the queue expires")


def length_drop_head(connection, channel):
    queue = name("length")
    channel.queue_declare(queue, exclusive=True, arguments={"x-max-length": 2})
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", queue, body)
    expect([channel.basic_get(queue, auto_ack=True)[2] for _ in range(2)], [b"2", b"3"], "kept")
    sized = name("bytes")
    channel.queue_declare(sized, exclusive=True, arguments={"x-max-length-bytes": 10})
    for body in (b"123456", b"abcdef"):
        channel.basic_publish("", sized, body)
    expect(bodies(take(connection, channel, sized, 1)), [b"abcdef"], "kept by size")


def refused(channel, queue):
    try:
        channel.basic_publish("", queue, b"over")
    except pika.exceptions.NackError:
        return
    raise AssertionError("a publish over the limit was confirmed")


def length_reject_publish(connection, channel):
    queue = name("reject")
    channel.queue_declare(queue, exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"kept")
    refused(channel, queue)
    expect(bodies(take(connection, channel, queue, 1)), [b"kept"], "kept")
    channel.basic_publish("", queue, b"room again")
    expect(left(channel, queue), 1, "after it was emptied")


def length_reject_publish_dlx(connection, channel):
    dead = name("dead")
    channel.queue_declare(dead, exclusive=True)
    queue = dying(channel, dead, max_length=1, overflow="reject-publish-dlx")
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"kept")
    refused(channel, queue)
    got = take(connection, channel, dead, 1)[0]
    expect((got[2], got[1].headers["x-death"][0]["reason"]), (b"over", "maxlen"), "dead letter")


def dead_letter(connection, channel):
    """A rejected, an expired and an overflowing message each end in the dead-letter queue with their reason."""
    dead, exchange = name("dead"), name("dlx")
    channel.exchange_declare(exchange, "fanout", auto_delete=True)
    channel.queue_declare(dead, exclusive=True)
    channel.queue_bind(dead, exchange)
    source = name("source")
    channel.queue_declare(source, exclusive=True, arguments={
        "x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": "rerouted", "x-max-length": 1})

    def died(body, reason, count):
        method, properties, got = take(connection, channel, dead, 1)[0]
        headers, death = properties.headers, properties.headers["x-death"][0]
        expect((got, method.exchange, method.routing_key), (body, exchange, "rerouted"), "where it came from")
        expect({k: death[k] for k in ("reason", "queue", "count", "exchange", "routing-keys")},
               {"reason": reason, "queue": source, "count": count, "exchange": "", "routing-keys": [source]}, "x-death")
        expect(isinstance(death["time"], datetime.datetime), True, "time of death")
        for when in ("first", "last"):
            expect([headers["x-%s-death-%s" % (when, what)] for what in ("reason", "queue", "exchange")],
                   [reason, source, ""], when + " death")
        return properties

    channel.basic_publish("", source, b"1")
    channel.basic_reject(channel.basic_get(source)[0].delivery_tag, requeue=False)
    again = died(b"1", "rejected", 1)
    channel.basic_publish("", source, b"1", again)
    channel.basic_nack(channel.basic_get(source)[0].delivery_tag, requeue=False)
    died(b"1", "rejected", 2)
    channel.basic_publish("", source, b"2", pika.BasicProperties(expiration="20"))
    died(b"2", "expired", 1)
    channel.basic_publish("", source, b"3")
    channel.basic_publish("", source, b"4")
    died(b"3", "maxlen", 1)


def priority_queue(connection, channel):
    queue = name("priority")
    channel.queue_declare(queue, exclusive=True, arguments={"x-max-priority": 5})
    for priority in (1, 5, None, 3, 9, 1):
        channel.basic_publish("", queue, b"%d" % (priority or 0), pika.BasicProperties(priority=priority))
    expect(bodies(take(connection, channel, queue, 6)), [b"5", b"9", b"3", b"1", b"1", b"0"], "by priority")


def quorum_delivery_limit(connection, channel):
    dead = name("dead")
    channel.queue_declare(dead, exclusive=True)
    queue = name("quorum")
    channel.queue_declare(queue, durable=True, arguments={
        "x-queue-type": "quorum", "x-delivery-limit": 2,
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"poison")
    got, tag = collect(channel, queue, auto_ack=False)
    for count in range(3):
        wait_until(lambda: len(got) > count, pump(connection), "try %d" % count)
        method, properties, _ = got[count]
        expect(((properties.headers or {}).get("x-delivery-count", 0), method.redelivered), (count, count > 0), "tries")
        channel.basic_nack(method.delivery_tag, requeue=True)
    death = take(connection, channel, dead, 1)[0][1].headers["x-death"][0]
    expect((death["reason"], death["queue"], len(got)), ("delivery_limit", queue, 3), "after the limit")
    channel.queue_delete(queue)


def stream_offset(connection, channel):
    queue = name("stream")
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"})
    channel.confirm_delivery()
    for i in range(5):
        channel.basic_publish("", queue, b"%d" % i)
    channel.basic_qos(prefetch_count=10)
    for offset, want in (("first", range(5)), (3, range(3, 5)), ("1h", range(5))):
        got, tag = collect(channel, queue, auto_ack=False, arguments={"x-stream-offset": offset})
        wait_until(lambda: len(got) >= len(want), pump(connection), "messages from %r" % offset)
        expect([(b, p.headers["x-stream-offset"]) for _, p, b in got], [(b"%d" % i, i) for i in want], "read")
        channel.basic_ack(got[-1][0].delivery_tag, multiple=True)
        channel.basic_cancel(tag)
    got, _ = collect(channel, queue, auto_ack=False, arguments={"x-stream-offset": "next"})
    channel.basic_publish("", queue, b"5")
    wait_until(lambda: got, pump(connection), "what comes next")
    expect((got[0][2], got[0][1].headers["x-stream-offset"]), (b"5", 5), "next")
    channel.queue_delete(queue)


def consumer_timeout(connection, channel):
    queue = name("timeout")
    channel.queue_declare(queue, exclusive=True, arguments={"x-consumer-timeout": 200})
    channel.basic_publish("", queue, b"forgotten")
    collect(channel, queue, auto_ack=False)
    connection.call_later(WAIT_SECONDS, channel.stop_consuming)
    try:
        channel.start_consuming()
        raise AssertionError("the channel is not closed")
    except pika.exceptions.ChannelClosedByBroker as closed:
        expect(closed.reply_code, 406, "reply code")
        expect("timed out. Timeout value used: 200 ms" in closed.reply_text, True, closed.reply_text)
    method, _, body = connection.channel().basic_get(queue, auto_ack=True)
    expect((body, method.redelivered), (b"forgotten", True), "back in the queue")
