// What queue arguments bring, with amqplib.
'use strict';

const assert = require('node:assert');
const { once } = require('node:events');
const { name, within, take, bodies, collect, declare, until } = require('./client');

const send = (channel, queue, body, options) => channel.sendToQueue(queue, Buffer.from(body), options);
const death = (message) => message.properties.headers['x-death'][0];
const dying = (channel, dead, args) => declare(channel,
  { 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': dead, ...args });

async function messageTTL(connection) {
  const channel = await connection.createChannel();
  const dead = await declare(channel);
  const byQueue = await dying(channel, dead, { 'x-message-ttl': 50 });
  const byItself = await dying(channel, dead);
  send(channel, byQueue, 'queue');
  send(channel, byItself, 'own', { expiration: 50 });
  const got = Object.fromEntries((await take(channel, dead, 2)).map((m) => [m.content.toString(), m]));
  for (const [body, queue, expiration] of [['queue', byQueue, undefined], ['own', byItself, '50']]) {
    const { reason, queue: from, 'original-expiration': original } = death(got[body]);
    assert.deepStrictEqual([reason, from, original, got[body].properties.expiration], ['expired', queue, expiration, undefined]);
  }
  send(channel, byItself, 'at once', { expiration: 0 });
  assert.strictEqual(await channel.get(byItself), false);
}

// queueExpires: publishing does not keep a queue alive; once it is gone the messages come back.
async function queueExpires(connection) {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue(name('expires'), { expires: 200 });
  let gone = false;
  channel.on('return', () => { gone = true; });
  const publish = async () => {
    send(channel, queue, 'x', { mandatory: true });
    await channel.waitForConfirms();
    return gone;
  };
  assert.strictEqual(await publish(), false);
  await until(publish, 'the queue expires');
}

async function lengthDropHead(connection) {
  const channel = await connection.createChannel();
  const queue = await declare(channel, { 'x-max-length': 2 });
  const sized = await declare(channel, { 'x-max-length-bytes': 10 });
  for (const body of ['1', '2', '3']) send(channel, queue, body);
  for (const body of ['123456', 'abcdef']) send(channel, sized, body);
  assert.deepStrictEqual(bodies(await take(channel, queue, 2)), ['2', '3']);
  assert.deepStrictEqual(bodies(await take(channel, sized, 1)), ['abcdef']);
}

// confirmed says whether the broker took a message.
function confirmed(channel, queue, body) {
  return within(new Promise((resolve) => {
    channel.sendToQueue(queue, Buffer.from(body), {}, (error) => resolve(!error));
  }), 'confirm');
}

async function lengthRejectPublish(connection) {
  const channel = await connection.createConfirmChannel();
  const queue = await declare(channel, { 'x-max-length': 1, 'x-overflow': 'reject-publish' });
  assert.strictEqual(await confirmed(channel, queue, 'kept'), true);
  assert.strictEqual(await confirmed(channel, queue, 'over'), false);
  assert.deepStrictEqual(bodies(await take(channel, queue, 1)), ['kept']);
  assert.strictEqual(await confirmed(channel, queue, 'room again'), true);
}

async function lengthRejectPublishDLX(connection) {
  const channel = await connection.createConfirmChannel();
  const dead = await declare(channel);
  const queue = await dying(channel, dead, { 'x-max-length': 1, 'x-overflow': 'reject-publish-dlx' });
  assert.strictEqual(await confirmed(channel, queue, 'kept'), true);
  assert.strictEqual(await confirmed(channel, queue, 'over'), false);
  const [message] = await take(channel, dead, 1);
  assert.deepStrictEqual([message.content.toString(), death(message).reason], ['over', 'maxlen']);
}

// deadLetter: a rejected, an expired and an overflowing message each end in the dead-letter queue with their reason.
async function deadLetter(connection) {
  const channel = await connection.createChannel();
  const dead = await declare(channel);
  const { exchange } = await channel.assertExchange(name('dlx'), 'fanout', { autoDelete: true });
  await channel.bindQueue(dead, exchange, '');
  const source = await declare(channel,
    { 'x-dead-letter-exchange': exchange, 'x-dead-letter-routing-key': 'rerouted', 'x-max-length': 1 });

  async function died(body, reason, count) {
    const [{ content, fields, properties: { headers } }] = await take(channel, dead, 1);
    assert.deepStrictEqual([content.toString(), fields.exchange, fields.routingKey], [body, exchange, 'rerouted']);
    const { time, ...rest } = headers['x-death'][0];
    assert.strictEqual(time['!'], 'timestamp');
    delete rest['original-expiration'];
    assert.deepStrictEqual({ ...rest }, { reason, queue: source, count, exchange: '', 'routing-keys': [source] });
    for (const when of ['first', 'last']) {
      assert.deepStrictEqual(['reason', 'queue', 'exchange'].map((what) => headers[`x-${when}-death-${what}`]), [reason, source, '']);
    }
    return headers;
  }

  send(channel, source, '1');
  channel.reject(await channel.get(source), false);
  const again = await died('1', 'rejected', 1);
  send(channel, source, '1', { headers: again });
  channel.nack(await channel.get(source), false, false);
  await died('1', 'rejected', 2);
  send(channel, source, '2', { expiration: 20 });
  await died('2', 'expired', 1);
  send(channel, source, '3');
  send(channel, source, '4');
  await died('3', 'maxlen', 1);
}

async function priorityQueue(connection) {
  const channel = await connection.createChannel();
  const queue = await declare(channel, { 'x-max-priority': 5 });
  for (const priority of [1, 5, undefined, 3, 9, 1]) send(channel, queue, String(priority || 0), { priority });
  assert.deepStrictEqual(bodies(await take(channel, queue, 6)), ['5', '9', '3', '1', '1', '0']);
}

async function quorumDeliveryLimit(connection) {
  const channel = await connection.createConfirmChannel();
  const dead = await declare(channel);
  const { queue } = await channel.assertQueue(name('quorum'), { durable: true, arguments: {
    'x-queue-type': 'quorum', 'x-delivery-limit': 2, 'x-dead-letter-exchange': '', 'x-dead-letter-routing-key': dead } });
  assert.strictEqual(await confirmed(channel, queue, 'poison'), true);
  const consumer = await collect(channel, queue, {});
  for (let count = 0; count < 3; count++) {
    await consumer.atLeast(count + 1);
    const message = consumer.got[count];
    assert.deepStrictEqual([message.properties.headers['x-delivery-count'] || 0, message.fields.redelivered], [count, count > 0]);
    channel.nack(message, false, true);
  }
  const { reason, queue: from } = death((await take(channel, dead, 1))[0]);
  assert.deepStrictEqual([reason, from, consumer.got.length], ['delivery_limit', queue, 3]);
  await channel.deleteQueue(queue);
}

async function streamOffset(connection) {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue(name('stream'), { durable: true, arguments: { 'x-queue-type': 'stream' } });
  for (let i = 0; i < 5; i++) assert.strictEqual(await confirmed(channel, queue, String(i)), true);
  await channel.prefetch(10);
  const read = (messages) => messages.map((m) => [m.content.toString(), m.properties.headers['x-stream-offset']]);
  const from = (first, end) => Array.from({ length: end - first }, (_, i) => [String(first + i), first + i]);
  for (const [offset, want] of [['first', from(0, 5)], [3, from(3, 5)], ['1h', from(0, 5)]]) {
    const consumer = await collect(channel, queue, { arguments: { 'x-stream-offset': offset } });
    await consumer.atLeast(want.length);
    assert.deepStrictEqual(read(consumer.got), want);
    channel.ack(consumer.got.at(-1), true);
    await channel.cancel(consumer.consumerTag);
  }
  const next = await collect(channel, queue, { arguments: { 'x-stream-offset': 'next' } });
  assert.strictEqual(await confirmed(channel, queue, '5'), true);
  await next.atLeast(1);
  assert.deepStrictEqual(read(next.got), from(5, 6));
  await channel.deleteQueue(queue);
}

async function consumerTimeout(connection) {
  const channel = await connection.createChannel();
  const queue = await declare(channel, { 'x-consumer-timeout': 200 });
  send(channel, queue, 'forgotten');
  const closed = once(channel, 'error');
  await channel.consume(queue, () => {});
  const [error] = await within(closed, 'channel.close');
  assert.strictEqual(error.code, 406);
  assert.match(error.message, /timed out\. Timeout value used: 200 ms/);
  const message = await (await connection.createChannel()).get(queue, { noAck: true });
  assert.deepStrictEqual([message.content.toString(), message.fields.redelivered], ['forgotten', true]);
}

module.exports = {
  'message-ttl': messageTTL, 'queue-expires': queueExpires, 'length-drop-head': lengthDropHead,
  'length-reject-publish': lengthRejectPublish, 'length-reject-publish-dlx': lengthRejectPublishDLX,
  'dead-letter': deadLetter, 'priority-queue': priorityQueue, 'quorum-delivery-limit': quorumDeliveryLimit,
  'stream-offset': streamOffset, 'consumer-timeout': consumerTimeout,
};
