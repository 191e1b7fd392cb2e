"""What queue arguments bring, with py-amqp."""

import datetime

import amqp

from pyamqp_client import bodies, collect, confirmed, declare, left, publish, pump, take
from runner import expect, name, wait_until


def dying(channel, dead, **arguments):
    """Declares a queue whose dead letters go to the queue dead."""
    return declare(channel, "dying", dead_letter_exchange="", dead_letter_routing_key=dead, **arguments)


def message_ttl(connection, channel):
    dead = declare(channel, "dead")
    by_queue, by_itself = dying(channel, dead, message_ttl=50), dying(channel, dead)
    publish(channel, "", by_queue, b"queue")
    publish(channel, "", by_itself, b"own", expiration="50")
    got = {m.body: m for m in take(connection, channel, dead, 2)}
    for body, queue, expiration in ((b"queue", by_queue, None), (b"own", by_itself, "50")):
        death = got[body].headers["x-death"][0]
        expect((death["reason"], death["queue"], death.get("original-expiration"),
                got[body].properties.get("expiration")), ("expired", queue, expiration, None), "death of %r" % body)
    publish(channel, "", by_itself, b"at once", expiration="0")
    expect(channel.basic_get(by_itself), None, "a message with a time to live of 0")


def queue_expires(connection, channel):
    """Publishing does not keep a queue alive: once it is gone the messages come back."""
    queue = name("expires")
    channel.queue_declare(queue, auto_delete=False, arguments={"x-expires": 200})
    gone = []
    channel.events["basic_return"].add(lambda *returned: gone.append(returned))
    publish(channel, "", queue, b"x", mandatory=True)

    def again():
        publish(channel, "", queue, b"x", mandatory=True)
        pump(connection)()

    expect(gone, [], "gone at once")
    wait_until(lambda: gone, again, "the queue expires")


def length_drop_head(connection, channel):
    queue, sized = declare(channel, "length", max_length=2), declare(channel, "bytes", max_length_bytes=10)
    for body in (b"1", b"2", b"3"):
        publish(channel, "", queue, body)
    for body in (b"123456", b"abcdef"):
        publish(channel, "", sized, body)
    expect(bodies(take(connection, channel, queue, 2)), [b"2", b"3"], "kept")
    expect(bodies(take(connection, channel, sized, 1)), [b"abcdef"], "kept by size")


def refused(channel, queue):
    try:
        confirmed(channel, "", queue, b"over")
    except amqp.exceptions.MessageNacked:
        return
    raise AssertionError("a publish over the limit was confirmed")


def length_reject_publish(connection, channel):
    queue = declare(channel, "reject", max_length=1, overflow="reject-publish")
    confirmed(channel, "", queue, b"kept")
    refused(channel, queue)
    expect(bodies(take(connection, channel, queue, 1)), [b"kept"], "kept")
    confirmed(channel, "", queue, b"room again")
    expect(left(channel, queue), 1, "after it was emptied")


def length_reject_publish_dlx(connection, channel):
    dead = declare(channel, "dead")
    queue = dying(channel, dead, max_length=1, overflow="reject-publish-dlx")
    confirmed(channel, "", queue, b"kept")
    refused(channel, queue)
    got = take(connection, channel, dead, 1)[0]
    expect((got.body, got.headers["x-death"][0]["reason"]), (b"over", "maxlen"), "dead letter")


def dead_letter(connection, channel):
    """A rejected, an expired and an overflowing message each end in the dead-letter queue with their reason."""
    dead, exchange = declare(channel, "dead"), name("dlx")
    channel.exchange_declare(exchange, "fanout", auto_delete=True)
    channel.queue_bind(dead, exchange)
    source = declare(channel, "source", dead_letter_exchange=exchange, dead_letter_routing_key="rerouted", max_length=1)

    def died(body, reason, count):
        got = take(connection, channel, dead, 1)[0]
        death = got.headers["x-death"][0]
        expect((got.body, got.delivery_info["exchange"], got.delivery_info["routing_key"]),
               (body, exchange, "rerouted"), "where it came from")
        expect({k: death[k] for k in ("reason", "queue", "count", "exchange", "routing-keys")},
               {"reason": reason, "queue": source, "count": count, "exchange": "", "routing-keys": [source]}, "x-death")
        expect(isinstance(death["time"], datetime.datetime), True, "time of death")
        for when in ("first", "last"):
            expect([got.headers["x-%s-death-%s" % (when, what)] for what in ("reason", "queue", "exchange")],
                   [reason, source, ""], when + " death")
        return got.headers

    publish(channel, "", source, b"1")
    channel.basic_reject(channel.basic_get(source).delivery_tag, requeue=False)
    again = died(b"1", "rejected", 1)
    publish(channel, "", source, b"1", application_headers=again)
    channel.basic_reject(channel.basic_get(source).delivery_tag, requeue=False)
    died(b"1", "rejected", 2)
    publish(channel, "", source, b"2", expiration="20")
    died(b"2", "expired", 1)
    publish(channel, "", source, b"3")
    publish(channel, "", source, b"4")
    died(b"3", "maxlen", 1)


def priority_queue(connection, channel):
    queue = declare(channel, "priority", max_priority=5)
    for priority in (1, 5, None, 3, 9, 1):
        properties = {} if priority is None else {"priority": priority}
        publish(channel, "", queue, b"%d" % (priority or 0), **properties)
    expect(bodies(take(connection, channel, queue, 6)), [b"5", b"9", b"3", b"1", b"1", b"0"], "by priority")


def quorum_delivery_limit(connection, channel):
    dead, queue = declare(channel, "dead"), name("quorum")
    channel.queue_declare(queue, durable=True, auto_delete=False, arguments={
        "x-queue-type": "quorum", "x-delivery-limit": 2,
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    confirmed(channel, "", queue, b"poison")
    got, tag = collect(channel, queue, no_ack=False)
    for count in range(3):
        wait_until(lambda: len(got) > count, pump(connection), "try %d" % count)
        headers = got[count].properties.get("application_headers") or {}
        expect((headers.get("x-delivery-count", 0), got[count].delivery_info["redelivered"]), (count, count > 0), "tries")
        channel.basic_reject(got[count].delivery_tag, requeue=True)
    death = take(connection, channel, dead, 1)[0].headers["x-death"][0]
    expect((death["reason"], death["queue"], len(got)), ("delivery_limit", queue, 3), "after the limit")
    channel.basic_cancel(tag)
    channel.queue_delete(queue)


def stream_offset(connection, channel):
    queue = name("stream")
    channel.queue_declare(queue, durable=True, auto_delete=False, arguments={"x-queue-type": "stream"})
    for i in range(5):
        confirmed(channel, "", queue, b"%d" % i)
    channel.basic_qos(0, 10, False)
    for offset, want in (("first", range(5)), (3, range(3, 5)), ("1h", range(5))):
        got, tag = collect(channel, queue, no_ack=False, arguments={"x-stream-offset": offset})
        wait_until(lambda: len(got) >= len(want), pump(connection), "messages from %r" % offset)
        expect([(m.body, m.headers["x-stream-offset"]) for m in got], [(b"%d" % i, i) for i in want], "read")
        channel.basic_ack(got[-1].delivery_tag, multiple=True)
        channel.basic_cancel(tag)
    got, tag = collect(channel, queue, no_ack=False, arguments={"x-stream-offset": "next"})
    confirmed(channel, "", queue, b"5")
    wait_until(lambda: got, pump(connection), "what comes next")
    expect((got[0].body, got[0].headers["x-stream-offset"]), (b"5", 5), "next")
    channel.basic_cancel(tag)
    channel.queue_delete(queue)


def consumer_timeout(connection, channel):
    queue = declare(channel, "timeout", consumer_timeout=200)
    publish(channel, "", queue, b"forgotten")
    collect(channel, queue, no_ack=False)
    try:
        wait_until(lambda: False, pump(connection), "the channel is closed")
    except amqp.PreconditionFailed as error:
        expect("timed out. Timeout value used: 200 ms" in error.reply_text, True, error.reply_text)
    got = connection.channel().basic_get(queue, no_ack=True)
    expect((got.body, got.delivery_info["redelivered"]), (b"forgotten", True), "back in the queue")
