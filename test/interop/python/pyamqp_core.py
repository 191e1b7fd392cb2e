"""The core of the protocol with py-amqp."""

import datetime

import amqp

from pyamqp_client import bodies, collect, confirmed, declare, left, publish, pump, take
from runner import Absent, expect, name, wait_until


def confirm_consume_ack(connection, channel):
    queue = declare(channel, "confirm")
    headers = {"text": "ü", "int": -7, "big": 1 << 40, "flag": True, "real": 0.5, "nothing": None,
               "list": [1, "two"], "table": {"in": "side"}, "time": datetime.datetime(2023, 11, 14, 22, 13, 20)}
    properties = dict(
        content_type="text/plain", content_encoding="utf-8", application_headers=headers, delivery_mode=2,
        priority=3, correlation_id="c", reply_to="r", expiration="60000", message_id="m", timestamp=1700000000,
        type="t", user_id="guest", app_id="a")
    for i in range(100):
        confirmed(channel, "", queue, "%d" % i, **properties)
    got = take(connection, channel, queue, 100, no_ack=False)
    expect(bodies(got), ["%d" % i for i in range(100)], "bodies in order")
    for field, want in properties.items():
        expect(got[0].properties[field], want, field)
    channel.basic_ack(got[-1].delivery_tag, multiple=True)
    expect(left(channel, queue), 0, "left after ack")


def nack_requeue_reject(connection, channel):
    """The client has no basic.nack: both returns are rejects."""
    queue = declare(channel, "reject")
    for body in (b"one", b"two"):
        publish(channel, "", queue, body)
    first = channel.basic_get(queue)
    expect((first.body, first.delivery_info["redelivered"]), (b"one", False), "first get")
    channel.basic_reject(first.delivery_tag, requeue=True)
    again = channel.basic_get(queue)
    expect((again.body, again.delivery_info["redelivered"]), (b"one", True), "requeued to its place")
    channel.basic_reject(again.delivery_tag, requeue=False)
    last = channel.basic_get(queue, no_ack=True)
    expect((last.body, last.delivery_info["redelivered"], last.delivery_info["message_count"]), (b"two", False, 0),
           "after the reject")


def get_empty(connection, channel):
    expect(channel.basic_get(declare(channel, "get")), None, "get from an empty queue")


def mandatory_return(connection, channel):
    returned = []
    channel.events["basic_return"].add(lambda error, exchange, key, message: returned.append((error, message)))
    channel.basic_publish_confirm(amqp.Message(b"lost"), "", name("nowhere"), mandatory=True, confirm_timeout=10)
    expect(len(returned), 1, "returns before the confirm")
    expect((returned[0][0].reply_code, returned[0][1].body), (312, b"lost"), "return")


def routed(connection, channel, kind, bindings, publishes, want):
    exchange, queue = name(kind), declare(channel, kind)
    channel.exchange_declare(exchange, kind, auto_delete=False)
    for key, arguments in bindings:
        channel.queue_bind(queue, exchange, key, arguments=arguments)
    for body, key, headers in publishes:
        publish(channel, exchange, key, body, application_headers=headers)
    expect(bodies(take(connection, channel, queue, len(want))), want, "routed")
    expect(left(channel, queue), 0, "routed beyond that")
    channel.exchange_delete(exchange)


def topic(connection, channel):
    routed(connection, channel, "topic", [("a.*.c", None), ("x.#", None)],
           [(b"1", "a.b.c", {}), (b"no", "a.b.d", {}), (b"2", "x", {}), (b"3", "x.y.z", {}), (b"no", "a.c", {})],
           [b"1", b"2", b"3"])


def headers(connection, channel):
    routed(connection, channel, "headers",
           [("", {"x-match": "all", "n": 1, "s": "v"}), ("", {"x-match": "any", "p": "q", "r": True})],
           [(b"1", "", {"n": 1, "s": "v", "more": 2}), (b"no", "", {"n": 1}), (b"2", "", {"r": True}),
            (b"no", "", {"r": False}), (b"no", "", {})], [b"1", b"2"])


def exchange_bind(connection, channel):
    source, target, queue = name("source"), name("target"), declare(channel, "e2e")
    channel.exchange_declare(source, "direct", auto_delete=False)
    channel.exchange_declare(target, "fanout", auto_delete=False)
    channel.exchange_bind(target, source, "k")
    channel.queue_bind(queue, target)
    publish(channel, source, "k", b"through")
    publish(channel, source, "other", b"no")
    expect(bodies(take(connection, channel, queue, 1)), [b"through"], "through two exchanges")
    channel.exchange_unbind(target, source, "k")
    publish(channel, source, "k", b"no")
    expect(left(channel, queue), 0, "after the unbind")
    channel.exchange_delete(source)
    channel.exchange_delete(target)


def cancel_notify(connection, channel):
    queue = name("cancel")
    channel.queue_declare(queue, auto_delete=False)
    cancelled = []
    _, tag = collect(channel, queue, on_cancel=cancelled.append)
    connection.channel().queue_delete(queue)
    wait_until(lambda: cancelled, pump(connection), "basic.cancel")
    expect(cancelled, [tag], "consumer tag")


def prefetch(connection, channel):
    queue = declare(channel, "prefetch")
    channel.basic_qos(0, 2, False)
    for i in range(5):
        publish(channel, "", queue, b"%d" % i)
    got, _ = collect(channel, queue, no_ack=False)
    wait_until(lambda: len(got) >= 2, pump(connection), "two deliveries")
    # The count travels behind every delivery made so far: three wait, two are out.
    expect((left(channel, queue), bodies(got)), (3, [b"0", b"1"]), "held back by prefetch 2")

    def ack_all():
        channel.basic_ack(got[-1].delivery_tag, multiple=True)
        pump(connection)()

    wait_until(lambda: len(got) >= 5, ack_all, "deliveries after acks")
    expect(bodies(got), [b"%d" % i for i in range(5)], "delivered")


def prefetch_global(connection, channel):
    queue = declare(channel, "shared")
    for i in range(5):
        publish(channel, "", queue, b"%d" % i)
    channel.basic_qos(0, 2, True)
    one, _ = collect(channel, queue, no_ack=False)
    two, _ = collect(channel, queue, no_ack=False)
    for window in (2, 3):
        channel.basic_qos(0, window, True)
        wait_until(lambda: len(one) + len(two) >= window, pump(connection), "%d deliveries" % window)
        expect((left(channel, queue), len(one) + len(two)), (5 - window, window), "a window for both consumers")
    channel.basic_qos(0, 0, True)
    wait_until(lambda: len(one) + len(two) >= 5, pump(connection), "all without a window")


def large_body(connection, channel):
    queue = declare(channel, "large")
    sent = [bytes((i * 31 + size) & 0xff for i in range(size)) for size in (0, 1, 131064, 131065, 1 << 20)]
    for body in sent:
        confirmed(channel, "", queue, body)
    for got, want in zip(bodies(take(connection, channel, queue, len(sent))), sent):
        if (got or b"") != want:  # the client gives an empty body as text
            raise AssertionError("a body of %d bytes came back changed (%d bytes)" % (len(want), len(got)))


def channel_error(connection, channel):
    try:
        left(channel, name("missing"))
        raise AssertionError("a passive declare of a missing queue passed")
    except amqp.NotFound as error:
        expect(error.reply_code, 404, "reply code")
    declare(connection.channel(), "after")


def transaction(connection, channel):
    queue = declare(channel, "tx")
    channel.tx_select()
    publish(channel, "", queue, b"undone")
    channel.tx_rollback()
    publish(channel, "", queue, b"done")
    other = connection.channel()
    expect(other.basic_get(queue), None, "visible before the commit")
    channel.tx_commit()
    got = other.basic_get(queue, no_ack=True)
    expect((got.body, got.delivery_info["message_count"]), (b"done", 0), "committed")


def user_id(connection, channel):
    queue = declare(channel, "user")
    confirmed(channel, "", queue, b"mine", user_id="guest")
    try:
        confirmed(channel, "", queue, b"his", user_id="bob")
        raise AssertionError("another's user id was taken")
    except amqp.PreconditionFailed as error:
        expect((error.reply_code, "user_id property set to 'bob'" in error.reply_text), (406, True), "reply")
    expect(left(connection.channel(), queue), 1, "published")


def update_secret(connection, channel):
    raise Absent("the client has no such call")
