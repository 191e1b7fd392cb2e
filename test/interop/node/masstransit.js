// Declares and does what MassTransit does over AMQP: node masstransit.js HOST PORT FEATURE...
//
// A message type is a durable fanout exchange; a type that it implements is another, bound to it. An endpoint is an
// exchange and a queue of one name, bound together, and bound to the exchange of each type that it consumes. What a
// consumer fails on goes to NAME_error, what it does not know to NAME_skipped, declared when first needed. Replies come
// to the bus's own queue, which lives as long as the process.
'use strict';

const assert = require('node:assert');
const { randomUUID } = require('node:crypto');
const { collect, connect, left, within } = require('./client');

const features = process.argv.slice(4);
const noBody = {};

// declareType declares a message type and the types that it implements.
async function declareType(channel, type, ...implemented) {
  await channel.assertExchange(type, 'fanout', { durable: true });
  for (const base of implemented) {
    await channel.assertExchange(base, 'fanout', { durable: true });
    await channel.bindExchange(base, type, '');
  }
}

// declareEndpoint declares an endpoint's exchange and queue, bound to the types that it consumes.
async function declareEndpoint(channel, endpoint, types, args = {}, temporary = false) {
  const life = temporary ? { durable: false, autoDelete: true } : { durable: true };
  await channel.assertExchange(endpoint, 'fanout', life);
  await channel.assertQueue(endpoint, { ...life, arguments: args });
  await channel.bindQueue(endpoint, endpoint, '');
  for (const type of types) {
    await declareType(channel, type);
    await channel.bindExchange(endpoint, type, '');
  }
}

// send publishes an envelope as the library writes it and waits for the confirm.
function send(channel, exchange, type, message, more = {}) {
  const envelope = {
    messageId: randomUUID(), conversationId: randomUUID(), sourceAddress: 'rabbitmq://localhost/client', messageType: [`urn:message:${type}`],
    destinationAddress: `rabbitmq://localhost/${exchange}`, message, sentTime: new Date().toISOString(), headers: {}, ...more.envelope,
  };
  return within(new Promise((resolve, reject) => {
    channel.publish(exchange, '', Buffer.from(JSON.stringify(envelope)), {
      contentType: 'application/vnd.masstransit+json', deliveryMode: 2, messageId: envelope.messageId,
      headers: { 'Content-Type': 'application/vnd.masstransit+json', publishId: '1', ...more.headers },
    }, (error) => (error ? reject(error) : resolve()));
  }), `the confirm of ${exchange}`);
}

const parse = (message) => JSON.parse(message.content.toString());

// move sends a message on to a queue beside the endpoint's, unchanged but for the reason in its headers.
async function move(channel, message, target, reason) {
  await declareEndpoint(channel, target, []);
  await within(new Promise((resolve, reject) => {
    channel.publish(target, '', message.content, {
      ...message.properties, headers: { ...message.properties.headers, 'MT-Reason': reason, 'MT-Fault-Message': 'it failed' },
    }, (error) => (error ? reject(error) : resolve()));
  }), `the confirm of ${target}`);
  channel.ack(message);
}

async function publishAndConsume(connection) {
  const channel = await connection.createConfirmChannel();
  await channel.prefetch(32);
  await declareType(channel, 'Contracts:OrderSubmitted', 'Contracts:OrderEvent');
  await declareEndpoint(channel, 'order-service', ['Contracts:OrderSubmitted']);
  await declareEndpoint(channel, 'audit', ['Contracts:OrderEvent'], { 'x-single-active-consumer': true });
  await declareEndpoint(channel, 'priority-service', ['Contracts:OrderSubmitted'], { 'x-max-priority': 5, 'x-queue-mode': 'lazy' });
  const orders = await collect(channel, 'order-service', {});
  for (let i = 0; i < 50; i++) await send(channel, 'Contracts:OrderSubmitted', 'Contracts:OrderSubmitted', { orderId: i });
  for (let i = 0; i < 50; i++) {
    await orders.atLeast(i + 1);
    channel.ack(orders.got[i]);
  }
  assert.deepStrictEqual(orders.got.map((m) => parse(m).message.orderId), Array.from({ length: 50 }, (_, i) => i));
  for (const { fields, properties } of orders.got) {
    assert.deepStrictEqual([fields.exchange, properties.contentType], ['Contracts:OrderSubmitted', 'application/vnd.masstransit+json']);
  }
  assert.deepStrictEqual([await left(channel, 'audit'), await left(channel, 'priority-service')], [50, 50]);
  // A type that only the base's consumers know reaches them alone.
  await declareType(channel, 'Contracts:OrderCancelled', 'Contracts:OrderEvent');
  await send(channel, 'Contracts:OrderCancelled', 'Contracts:OrderCancelled', { orderId: 1 });
  assert.deepStrictEqual([await left(channel, 'audit'), await left(channel, 'order-service')], [51, 0]);
  await channel.close();
}

async function errorAndSkipped(connection) {
  const channel = await connection.createConfirmChannel();
  const orders = await collect(channel, 'order-service', {});
  await send(channel, 'order-service', 'Contracts:OrderSubmitted', { orderId: 'bad' });
  await send(channel, 'order-service', 'Contracts:Unheard', noBody);
  await orders.atLeast(2);
  await move(channel, orders.got[0], 'order-service_error', 'fault');
  await move(channel, orders.got[1], 'order-service_skipped', 'dead-letter');
  for (const [queue, reason, message] of [['order-service_error', 'fault', { orderId: 'bad' }], ['order-service_skipped', 'dead-letter', noBody]]) {
    const moved = await channel.get(queue, { noAck: true });
    assert.deepStrictEqual([moved.properties.headers['MT-Reason'], parse(moved).message], [reason, message]);
  }
  assert.strictEqual(await left(channel, 'order-service'), 0);
  await channel.close();
}

async function requestAndResponse(connection) {
  const client = await connect();
  const channel = await client.createConfirmChannel();
  const bus = `host_client_bus_${randomUUID().replaceAll('-', '')}`;
  await declareEndpoint(channel, bus, [], { 'x-expires': 60000 }, true);
  const responses = await collect(channel, bus, {});
  const service = await connection.createConfirmChannel();
  await declareEndpoint(service, 'check-status', ['Contracts:CheckStatus']);
  await service.consume('check-status', async (request) => {
    const { requestId, responseAddress, message } = parse(request);
    const exchange = new URL(responseAddress).pathname.slice(1);
    await send(service, exchange, 'Contracts:Status', { of: message.orderId }, { envelope: { requestId } });
    service.ack(request);
  });
  for (let i = 0; i < 20; i++) {
    const envelope = { requestId: `r${i}`, responseAddress: `rabbitmq://localhost/${bus}?temporary=true` };
    await send(channel, 'Contracts:CheckStatus', 'Contracts:CheckStatus', { orderId: i }, { envelope });
    await responses.atLeast(i + 1);
    const response = parse(responses.got[i]);
    assert.deepStrictEqual([response.requestId, response.message.of], [`r${i}`, i]);
    channel.ack(responses.got[i]);
  }
  await client.close();
  // The queue goes with its consumer, the exchange with its last binding.
  for (const check of ['checkQueue', 'checkExchange']) {
    const probe = await connection.createChannel();
    await assert.rejects(probe[check](bus), /404/);
  }
  await service.close();
}

// quorum: the endpoint's queue with SetQuorumQueue(3).
async function quorum(connection) {
  const channel = await connection.createConfirmChannel();
  await declareEndpoint(channel, 'quorum-service', ['Contracts:OrderSubmitted'], { 'x-queue-type': 'quorum', 'x-quorum-initial-group-size': 3 });
  const orders = await collect(channel, 'quorum-service', {});
  await send(channel, 'Contracts:OrderSubmitted', 'Contracts:OrderSubmitted', { orderId: 7 });
  await orders.atLeast(1);
  channel.nack(orders.got[0], false, true);
  await orders.atLeast(2);
  assert.deepStrictEqual([parse(orders.got[1]).message.orderId, orders.got[1].properties.headers['x-delivery-count']], [7, 1]);
  channel.ack(orders.got[1]);
  await channel.close();
}

// scheduled: redelivery by the delayed exchange in front of the endpoint's own.
async function scheduled(connection) {
  const channel = await connection.createConfirmChannel();
  await channel.assertExchange('order-service_delay', 'x-delayed-message', { durable: true, arguments: { 'x-delayed-type': 'fanout' } });
  await channel.bindExchange('order-service', 'order-service_delay', '');
  const orders = await collect(channel, 'order-service', {});
  const seen = orders.got.length;
  const started = Date.now();
  await send(channel, 'order-service_delay', 'Contracts:OrderSubmitted', { orderId: 'later' }, { headers: { 'x-delay': 200 } });
  await orders.atLeast(seen + 1);
  assert.ok(Date.now() - started >= 199, 'too early');
  assert.strictEqual(parse(orders.got.at(-1)).message.orderId, 'later');
  channel.ack(orders.got.at(-1), true);
  await channel.close();
}

async function main() {
  const connection = await connect();
  await publishAndConsume(connection);
  await errorAndSkipped(connection);
  await requestAndResponse(connection);
  if (features.includes('quorum-delivery-limit')) await quorum(connection);
  if (features.includes('delayed-message')) await scheduled(connection);
  await connection.close();
}

main().then(() => process.exit(0), (error) => {
  console.log(error.stack);
  process.exit(1);
});
