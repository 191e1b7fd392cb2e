"""The core of the protocol with pika."""

import pika

from pika_client import pump, take
from runner import expect, name, wait_until


def confirm_consume_ack(connection, channel):
    queue = name("confirm")
    channel.queue_declare(queue, exclusive=True)
    channel.confirm_delivery()
    headers = {"text": "ü", "int": -7, "big": 1 << 40, "flag": True, "list": [1, "two"], "table": {"in": "side"}}
    properties = pika.BasicProperties(
        content_type="text/plain", content_encoding="utf-8", headers=headers, delivery_mode=2, priority=3,
        correlation_id="c", reply_to="r", expiration="60000", message_id="m", timestamp=1700000000, type="t",
        user_id="guest", app_id="a")
    for i in range(100):
        channel.basic_publish("", queue, b"%d" % i, properties)
    got = take(connection, channel, queue, 100, auto_ack=False)
    expect([b for _, _, b in got], [b"%d" % i for i in range(100)], "bodies in order")
    seen = got[0][1]
    for field in ("content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
                  "reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id"):
        expect(getattr(seen, field), getattr(properties, field), field)
    channel.basic_ack(got[-1][0].delivery_tag, multiple=True)
    expect(channel.queue_declare(queue, passive=True).method.message_count, 0, "left after ack")


def nack_requeue_reject(connection, channel):
    queue = name("nack")
    channel.queue_declare(queue, exclusive=True)
    for body in (b"one", b"two"):
        channel.basic_publish("", queue, body)
    first, _, body = channel.basic_get(queue)
    expect((body, first.redelivered), (b"one", False), "first get")
    channel.basic_nack(first.delivery_tag, requeue=True)
    again, _, body = channel.basic_get(queue)
    expect((body, again.redelivered), (b"one", True), "requeued to its place")
    channel.basic_reject(again.delivery_tag, requeue=False)
    last, _, body = channel.basic_get(queue, auto_ack=True)
    expect((body, last.redelivered, last.message_count), (b"two", False, 0), "after the reject")


def get_empty(connection, channel):
    queue = name("get")
    channel.queue_declare(queue, exclusive=True)
    expect(channel.basic_get(queue)[0], None, "get from an empty queue")


def mandatory_return(connection, channel):
    channel.confirm_delivery()
    try:
        channel.basic_publish("", name("nowhere"), b"lost", mandatory=True)
    except pika.exceptions.UnroutableError as error:
        expect(error.messages[0].method.reply_code, 312, "reply code")
        expect(error.messages[0].body, b"lost", "returned body")
        return
    raise AssertionError("a mandatory message without a queue was not returned")


def routed(connection, channel, kind, bindings, publishes, want):
    exchange, queue = name(kind), name(kind)
    channel.exchange_declare(exchange, kind)
    channel.queue_declare(queue, exclusive=True)
    for key, arguments in bindings:
        channel.queue_bind(queue, exchange, key, arguments)
    for body, key, headers in publishes:
        channel.basic_publish(exchange, key, body, pika.BasicProperties(headers=headers))
    expect([b for _, _, b in take(connection, channel, queue, len(want))], want, "routed")
    expect(channel.queue_declare(queue, passive=True).method.message_count, 0, "routed beyond that")
    channel.exchange_delete(exchange)


def topic(connection, channel):
    routed(connection, channel, "topic", [("a.*.c", None), ("x.#", None)],
           [(b"1", "a.b.c", None), (b"no", "a.b.d", None), (b"2", "x", None), (b"3", "x.y.z", None),
            (b"no", "a.c", None)], [b"1", b"2", b"3"])


def headers(connection, channel):
    routed(connection, channel, "headers",
           [("", {"x-match": "all", "n": 1, "s": "v"}), ("", {"x-match": "any", "p": "q", "r": True})],
           [(b"1", "", {"n": 1, "s": "v", "more": 2}), (b"no", "", {"n": 1}), (b"2", "", {"r": True}),
            (b"no", "", {"r": False}), (b"no", "", None)], [b"1", b"2"])


def exchange_bind(connection, channel):
    source, target, queue = name("source"), name("target"), name("e2e")
    channel.exchange_declare(source, "direct")
    channel.exchange_declare(target, "fanout")
    channel.queue_declare(queue, exclusive=True)
    channel.exchange_bind(target, source, "k")
    channel.queue_bind(queue, target)
    channel.basic_publish(source, "k", b"through")
    channel.basic_publish(source, "other", b"no")
    expect([b for _, _, b in take(connection, channel, queue, 1)], [b"through"], "through two exchanges")
    channel.exchange_unbind(target, source, "k")
    channel.basic_publish(source, "k", b"no")
    expect(channel.queue_declare(queue, passive=True).method.message_count, 0, "after the unbind")
    channel.exchange_delete(source)
    channel.exchange_delete(target)


def cancel_notify(connection, channel):
    queue = name("cancel")
    channel.queue_declare(queue)
    cancelled = []
    channel.add_on_cancel_callback(cancelled.append)
    tag = channel.basic_consume(queue, lambda *_: None)
    other = connection.channel()
    other.queue_delete(queue)
    wait_until(lambda: cancelled, pump(connection), "basic.cancel")
    expect(len(cancelled), 1, "cancel notifications")
    expect(cancelled[0].method.consumer_tag, tag, "consumer tag")


def prefetch(connection, channel):
    queue = name("prefetch")
    channel.queue_declare(queue, exclusive=True)
    channel.basic_qos(prefetch_count=2)
    for i in range(5):
        channel.basic_publish("", queue, b"%d" % i)
    got = []
    channel.basic_consume(queue, lambda ch, m, p, b: got.append((m, b)))
    wait_until(lambda: len(got) >= 2, pump(connection), "two deliveries")
    # The count travels behind every delivery made so far: three wait, two are out.
    expect(channel.queue_declare(queue, passive=True).method.message_count, 3, "held back by prefetch 2")
    expect([b for _, b in got], [b"0", b"1"], "delivered")

    def ack_all():
        channel.basic_ack(got[-1][0].delivery_tag, multiple=True)
        connection.process_data_events(time_limit=0.1)

    wait_until(lambda: len(got) >= 5, ack_all, "deliveries after acks")
    expect([b for _, b in got], [b"%d" % i for i in range(5)], "delivered after acks")


def large_body(connection, channel):
    queue = name("large")
    channel.queue_declare(queue, exclusive=True)
    channel.confirm_delivery()
    bodies = [bytes((i * 31 + size) & 0xff for i in range(size)) for size in (0, 1, 131064, 131065, 1 << 20)]
    for body in bodies:
        channel.basic_publish("", queue, body)
    for got, want in zip(take(connection, channel, queue, len(bodies)), bodies):
        if got[2] != want:
            raise AssertionError("a body of %d bytes came back changed (%d bytes)" % (len(want), len(got[2])))


def channel_error(connection, channel):
    try:
        channel.queue_declare(name("missing"), passive=True)
        raise AssertionError("a passive declare of a missing queue passed")
    except pika.exceptions.ChannelClosedByBroker as error:
        expect(error.reply_code, 404, "reply code")
    connection.channel().queue_declare(name("after"), exclusive=True)


def transaction(connection, channel):
    queue = name("tx")
    channel.queue_declare(queue, exclusive=True)
    channel.tx_select()
    channel.basic_publish("", queue, b"undone")
    channel.tx_rollback()
    channel.basic_publish("", queue, b"done")
    other = connection.channel()
    expect(other.basic_get(queue)[0], None, "visible before the commit")
    channel.tx_commit()
    method, _, body = other.basic_get(queue, auto_ack=True)
    expect((body, method.message_count), (b"done", 0), "committed")
