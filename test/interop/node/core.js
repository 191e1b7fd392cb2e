// The core of the protocol with amqplib.
'use strict';

const assert = require('node:assert');
const { once } = require('node:events');
const { name, within, take, bodies, left, declare, exclusive } = require('./client');

async function confirmConsumeAck(connection) {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue('', exclusive);
  const properties = {
    contentType: 'text/plain', contentEncoding: 'utf-8', deliveryMode: 2, priority: 3, correlationId: 'c',
    replyTo: 'r', expiration: '60000', messageId: 'm', timestamp: 1700000000, type: 't', userId: 'guest', appId: 'a',
    headers: { text: 'ü', int: -7, big: 2 ** 40, real: 0.5, flag: true, nothing: null, list: [1, 'two'], table: { in: 'side' } },
  };
  for (let i = 0; i < 100; i++) channel.sendToQueue(queue, Buffer.from(String(i)), properties);
  await within(channel.waitForConfirms(), 'confirms');
  const got = await take(channel, queue, 100, {});
  assert.deepStrictEqual(bodies(got), Array.from({ length: 100 }, (_, i) => String(i)));
  for (const [key, value] of Object.entries(properties)) {
    assert.deepStrictEqual(got[0].properties[key], value, key);
  }
  channel.ack(got[99], true);
  assert.strictEqual(await left(channel, queue), 0);
}

async function nackRequeueReject(connection) {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue('', exclusive);
  channel.sendToQueue(queue, Buffer.from('one'));
  channel.sendToQueue(queue, Buffer.from('two'));
  const first = await channel.get(queue);
  assert.deepStrictEqual([first.content.toString(), first.fields.redelivered], ['one', false]);
  channel.nack(first, false, true);
  const again = await channel.get(queue);
  assert.deepStrictEqual([again.content.toString(), again.fields.redelivered], ['one', true]);
  channel.reject(again, false);
  const last = await channel.get(queue, { noAck: true });
  assert.deepStrictEqual([last.content.toString(), last.fields.redelivered, last.fields.messageCount], ['two', false, 0]);
}

async function getEmpty(connection) {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue('', exclusive);
  assert.strictEqual(await channel.get(queue), false);
}

async function mandatoryReturn(connection) {
  const channel = await connection.createConfirmChannel();
  const returned = once(channel, 'return');
  channel.sendToQueue(name('nowhere'), Buffer.from('lost'), { mandatory: true });
  const [message] = await within(returned, 'basic.return');
  assert.deepStrictEqual([message.fields.replyCode, message.content.toString()], [312, 'lost']);
  await within(channel.waitForConfirms(), 'the confirm of a returned message');
}

async function routed(connection, kind, bindings, publishes, want) {
  const channel = await connection.createChannel();
  const { exchange } = await channel.assertExchange(name(kind), kind);
  const { queue } = await channel.assertQueue('', exclusive);
  for (const [key, args] of bindings) await channel.bindQueue(queue, exchange, key, args);
  for (const [body, key, headers] of publishes) channel.publish(exchange, key, Buffer.from(body), { headers });
  assert.deepStrictEqual(bodies(await take(channel, queue, want.length)), want);
  assert.strictEqual(await left(channel, queue), 0);
  await channel.deleteExchange(exchange);
}

const topic = (connection) => routed(connection, 'topic', [['a.*.c'], ['x.#']],
  [['1', 'a.b.c'], ['no', 'a.b.d'], ['2', 'x'], ['3', 'x.y.z'], ['no', 'a.c']], ['1', '2', '3']);

const headers = (connection) => routed(connection, 'headers',
  [['', { 'x-match': 'all', n: 1, s: 'v' }], ['', { 'x-match': 'any', p: 'q', r: true }]],
  [['1', '', { n: 1, s: 'v', more: 2 }], ['no', '', { n: 1 }], ['2', '', { r: true }], ['no', '', { r: false }], ['no', '']],
  ['1', '2']);

async function exchangeBind(connection) {
  const channel = await connection.createChannel();
  const { exchange: source } = await channel.assertExchange(name('source'), 'direct');
  const { exchange: target } = await channel.assertExchange(name('target'), 'fanout');
  const { queue } = await channel.assertQueue('', exclusive);
  await channel.bindExchange(target, source, 'k');
  await channel.bindQueue(queue, target, '');
  channel.publish(source, 'k', Buffer.from('through'));
  channel.publish(source, 'other', Buffer.from('no'));
  assert.deepStrictEqual(bodies(await take(channel, queue, 1)), ['through']);
  await channel.unbindExchange(target, source, 'k');
  channel.publish(source, 'k', Buffer.from('no'));
  assert.strictEqual(await left(channel, queue), 0);
  await channel.deleteExchange(source);
  await channel.deleteExchange(target);
}

async function cancelNotify(connection) {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue(name('cancel'));
  let notify;
  const notified = new Promise((resolve) => { notify = resolve; });
  await channel.consume(queue, (message) => notify(message)); // null says cancelled
  const other = await connection.createChannel();
  await other.deleteQueue(queue);
  assert.strictEqual(await within(notified, 'basic.cancel'), null);
}

async function prefetch(connection) {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue('', exclusive);
  await channel.prefetch(2);
  for (let i = 0; i < 5; i++) channel.sendToQueue(queue, Buffer.from(String(i)));
  const got = [];
  let wanted = 2;
  let enough;
  let done = new Promise((resolve) => { enough = resolve; });
  await channel.consume(queue, (message) => {
    got.push(message);
    if (wanted === 5) channel.ack(message);
    if (got.length === wanted) enough();
  });
  await within(done, 'two deliveries');
  // The count travels behind every delivery made so far: three wait, two are out.
  assert.strictEqual(await left(channel, queue), 3);
  assert.deepStrictEqual(bodies(got), ['0', '1']);
  wanted = 5;
  done = new Promise((resolve) => { enough = resolve; });
  channel.ack(got[1], true);
  await within(done, 'the rest after the ack');
  assert.deepStrictEqual(bodies(got), ['0', '1', '2', '3', '4']);
}

async function largeBody(connection) {
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue('', exclusive);
  const sent = [0, 1, 4088, 4089, 131064, 131065, 1 << 20].map((size) => Buffer.alloc(size, `pattern ${size} `));
  for (const body of sent) channel.sendToQueue(queue, body);
  await within(channel.waitForConfirms(), 'confirms');
  const got = await take(channel, queue, sent.length);
  sent.forEach((body, i) => assert.ok(body.equals(got[i].content), `a body of ${body.length} bytes came back changed`));
}

async function channelError(connection) {
  const channel = await connection.createChannel();
  const closed = once(channel, 'error');
  await assert.rejects(channel.checkQueue(name('missing')), /404/);
  const [error] = await within(closed, 'channel.close');
  assert.strictEqual(error.code, 404);
  await (await connection.createChannel()).assertQueue('', exclusive);
}

// prefetchGlobal: one window for both consumers, which grows and goes at once.
async function prefetchGlobal(connection) {
  const channel = await connection.createChannel();
  const queue = await declare(channel);
  for (let i = 0; i < 5; i++) channel.sendToQueue(queue, Buffer.from(String(i)));
  await channel.prefetch(2, true);
  const one = [];
  let wake = () => {};
  const seen = (message) => {
    one.push(message);
    wake();
  };
  const grown = async (count) => {
    while (one.length < count) await new Promise((resolve) => { wake = resolve; });
  };
  await channel.consume(queue, seen);
  await channel.consume(queue, seen);
  for (const window of [2, 3]) {
    await channel.prefetch(window, true);
    await within(grown(window), `${window} deliveries`);
    assert.deepStrictEqual([await left(channel, queue), one.length], [5 - window, window]);
  }
  await channel.prefetch(0, true);
  await within(grown(5), 'all without a window');
}

async function updateSecret(connection) {
  await connection.updateSecret(Buffer.from('guest'), 'renewed');
  await declare(await connection.createChannel());
}

async function userId(connection) {
  const channel = await connection.createConfirmChannel();
  const queue = await declare(channel);
  channel.sendToQueue(queue, Buffer.from('mine'), { userId: 'guest' });
  await within(channel.waitForConfirms(), 'confirm');
  const closed = once(channel, 'error');
  channel.sendToQueue(queue, Buffer.from('his'), { userId: 'bob' });
  const [error] = await within(closed, 'channel.close');
  assert.strictEqual(error.code, 406);
  assert.match(error.message, /user_id property set to 'bob'/);
  assert.strictEqual(await left(await connection.createChannel(), queue), 1);
}

module.exports = {
  'confirm-consume-ack': confirmConsumeAck, 'nack-requeue-reject': nackRequeueReject, 'get-empty': getEmpty,
  'mandatory-return': mandatoryReturn, topic, headers, 'exchange-bind': exchangeBind, 'cancel-notify': cancelNotify,
  prefetch, 'large-body': largeBody, 'channel-error': channelError, 'prefetch-global': prefetchGlobal,
  'update-secret': updateSecret, 'user-id': userId,
};
