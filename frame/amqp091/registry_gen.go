// Code generated from gen/methods.txt. DO NOT EDIT.

package amqp091

// Method identifiers, class in the upper half.
const (
	// MethodConnectionStart is connection.start, sent by servers.
	MethodConnectionStart MethodID = 10<<16 | 10
	// MethodConnectionStartOk is connection.start-ok, sent by clients.
	MethodConnectionStartOk MethodID = 10<<16 | 11
	// MethodConnectionSecure is connection.secure, sent by servers.
	MethodConnectionSecure MethodID = 10<<16 | 20
	// MethodConnectionSecureOk is connection.secure-ok, sent by clients.
	MethodConnectionSecureOk MethodID = 10<<16 | 21
	// MethodConnectionTune is connection.tune, sent by servers.
	MethodConnectionTune MethodID = 10<<16 | 30
	// MethodConnectionTuneOk is connection.tune-ok, sent by clients.
	MethodConnectionTuneOk MethodID = 10<<16 | 31
	// MethodConnectionOpen is connection.open, sent by clients.
	MethodConnectionOpen MethodID = 10<<16 | 40
	// MethodConnectionOpenOk is connection.open-ok, sent by servers.
	MethodConnectionOpenOk MethodID = 10<<16 | 41
	// MethodConnectionClose is connection.close, sent by both peers.
	MethodConnectionClose MethodID = 10<<16 | 50
	// MethodConnectionCloseOk is connection.close-ok, sent by both peers.
	MethodConnectionCloseOk MethodID = 10<<16 | 51
	// MethodConnectionBlocked is connection.blocked, sent by servers.
	MethodConnectionBlocked MethodID = 10<<16 | 60
	// MethodConnectionUnblocked is connection.unblocked, sent by servers.
	MethodConnectionUnblocked MethodID = 10<<16 | 61
	// MethodConnectionUpdateSecret is connection.update-secret, sent by clients.
	MethodConnectionUpdateSecret MethodID = 10<<16 | 70
	// MethodConnectionUpdateSecretOk is connection.update-secret-ok, sent by servers.
	MethodConnectionUpdateSecretOk MethodID = 10<<16 | 71
	// MethodChannelOpen is channel.open, sent by clients.
	MethodChannelOpen MethodID = 20<<16 | 10
	// MethodChannelOpenOk is channel.open-ok, sent by servers.
	MethodChannelOpenOk MethodID = 20<<16 | 11
	// MethodChannelFlow is channel.flow, sent by both peers.
	MethodChannelFlow MethodID = 20<<16 | 20
	// MethodChannelFlowOk is channel.flow-ok, sent by both peers.
	MethodChannelFlowOk MethodID = 20<<16 | 21
	// MethodChannelClose is channel.close, sent by both peers.
	MethodChannelClose MethodID = 20<<16 | 40
	// MethodChannelCloseOk is channel.close-ok, sent by both peers.
	MethodChannelCloseOk MethodID = 20<<16 | 41
	// MethodAccessRequest is access.request, sent by clients.
	MethodAccessRequest MethodID = 30<<16 | 10
	// MethodAccessRequestOk is access.request-ok, sent by servers.
	MethodAccessRequestOk MethodID = 30<<16 | 11
	// MethodExchangeDeclare is exchange.declare, sent by clients.
	MethodExchangeDeclare MethodID = 40<<16 | 10
	// MethodExchangeDeclareOk is exchange.declare-ok, sent by servers.
	MethodExchangeDeclareOk MethodID = 40<<16 | 11
	// MethodExchangeDelete is exchange.delete, sent by clients.
	MethodExchangeDelete MethodID = 40<<16 | 20
	// MethodExchangeDeleteOk is exchange.delete-ok, sent by servers.
	MethodExchangeDeleteOk MethodID = 40<<16 | 21
	// MethodExchangeBind is exchange.bind, sent by clients.
	MethodExchangeBind MethodID = 40<<16 | 30
	// MethodExchangeBindOk is exchange.bind-ok, sent by servers.
	MethodExchangeBindOk MethodID = 40<<16 | 31
	// MethodExchangeUnbind is exchange.unbind, sent by clients.
	MethodExchangeUnbind MethodID = 40<<16 | 40
	// MethodExchangeUnbindOk is exchange.unbind-ok, sent by servers.
	MethodExchangeUnbindOk MethodID = 40<<16 | 51
	// MethodQueueDeclare is queue.declare, sent by clients.
	MethodQueueDeclare MethodID = 50<<16 | 10
	// MethodQueueDeclareOk is queue.declare-ok, sent by servers.
	MethodQueueDeclareOk MethodID = 50<<16 | 11
	// MethodQueueBind is queue.bind, sent by clients.
	MethodQueueBind MethodID = 50<<16 | 20
	// MethodQueueBindOk is queue.bind-ok, sent by servers.
	MethodQueueBindOk MethodID = 50<<16 | 21
	// MethodQueuePurge is queue.purge, sent by clients.
	MethodQueuePurge MethodID = 50<<16 | 30
	// MethodQueuePurgeOk is queue.purge-ok, sent by servers.
	MethodQueuePurgeOk MethodID = 50<<16 | 31
	// MethodQueueDelete is queue.delete, sent by clients.
	MethodQueueDelete MethodID = 50<<16 | 40
	// MethodQueueDeleteOk is queue.delete-ok, sent by servers.
	MethodQueueDeleteOk MethodID = 50<<16 | 41
	// MethodQueueUnbind is queue.unbind, sent by clients.
	MethodQueueUnbind MethodID = 50<<16 | 50
	// MethodQueueUnbindOk is queue.unbind-ok, sent by servers.
	MethodQueueUnbindOk MethodID = 50<<16 | 51
	// MethodBasicQos is basic.qos, sent by clients.
	MethodBasicQos MethodID = 60<<16 | 10
	// MethodBasicQosOk is basic.qos-ok, sent by servers.
	MethodBasicQosOk MethodID = 60<<16 | 11
	// MethodBasicConsume is basic.consume, sent by clients.
	MethodBasicConsume MethodID = 60<<16 | 20
	// MethodBasicConsumeOk is basic.consume-ok, sent by servers.
	MethodBasicConsumeOk MethodID = 60<<16 | 21
	// MethodBasicCancel is basic.cancel, sent by both peers.
	MethodBasicCancel MethodID = 60<<16 | 30
	// MethodBasicCancelOk is basic.cancel-ok, sent by both peers.
	MethodBasicCancelOk MethodID = 60<<16 | 31
	// MethodBasicPublish is basic.publish, sent by clients.
	MethodBasicPublish MethodID = 60<<16 | 40
	// MethodBasicReturn is basic.return, sent by servers.
	MethodBasicReturn MethodID = 60<<16 | 50
	// MethodBasicDeliver is basic.deliver, sent by servers.
	MethodBasicDeliver MethodID = 60<<16 | 60
	// MethodBasicGet is basic.get, sent by clients.
	MethodBasicGet MethodID = 60<<16 | 70
	// MethodBasicGetOk is basic.get-ok, sent by servers.
	MethodBasicGetOk MethodID = 60<<16 | 71
	// MethodBasicGetEmpty is basic.get-empty, sent by servers.
	MethodBasicGetEmpty MethodID = 60<<16 | 72
	// MethodBasicAck is basic.ack, sent by both peers.
	MethodBasicAck MethodID = 60<<16 | 80
	// MethodBasicReject is basic.reject, sent by clients.
	MethodBasicReject MethodID = 60<<16 | 90
	// MethodBasicRecoverAsync is basic.recover-async, sent by clients.
	MethodBasicRecoverAsync MethodID = 60<<16 | 100
	// MethodBasicRecover is basic.recover, sent by clients.
	MethodBasicRecover MethodID = 60<<16 | 110
	// MethodBasicRecoverOk is basic.recover-ok, sent by servers.
	MethodBasicRecoverOk MethodID = 60<<16 | 111
	// MethodBasicNack is basic.nack, sent by both peers.
	MethodBasicNack MethodID = 60<<16 | 120
	// MethodConfirmSelect is confirm.select, sent by clients.
	MethodConfirmSelect MethodID = 85<<16 | 10
	// MethodConfirmSelectOk is confirm.select-ok, sent by servers.
	MethodConfirmSelectOk MethodID = 85<<16 | 11
	// MethodTxSelect is tx.select, sent by clients.
	MethodTxSelect MethodID = 90<<16 | 10
	// MethodTxSelectOk is tx.select-ok, sent by servers.
	MethodTxSelectOk MethodID = 90<<16 | 11
	// MethodTxCommit is tx.commit, sent by clients.
	MethodTxCommit MethodID = 90<<16 | 20
	// MethodTxCommitOk is tx.commit-ok, sent by servers.
	MethodTxCommitOk MethodID = 90<<16 | 21
	// MethodTxRollback is tx.rollback, sent by clients.
	MethodTxRollback MethodID = 90<<16 | 30
	// MethodTxRollbackOk is tx.rollback-ok, sent by servers.
	MethodTxRollbackOk MethodID = 90<<16 | 31
)

// methodInfo returns name and properties; the empty name means unknown.
func methodInfo(id MethodID) (name string, flags uint8) {
	switch id {
	case MethodConnectionStart:
		return "connection.start", 0
	case MethodConnectionStartOk:
		return "connection.start-ok", fromClient
	case MethodConnectionSecure:
		return "connection.secure", 0
	case MethodConnectionSecureOk:
		return "connection.secure-ok", fromClient
	case MethodConnectionTune:
		return "connection.tune", 0
	case MethodConnectionTuneOk:
		return "connection.tune-ok", fromClient
	case MethodConnectionOpen:
		return "connection.open", fromClient
	case MethodConnectionOpenOk:
		return "connection.open-ok", 0
	case MethodConnectionClose:
		return "connection.close", fromClient
	case MethodConnectionCloseOk:
		return "connection.close-ok", fromClient
	case MethodConnectionBlocked:
		return "connection.blocked", 0
	case MethodConnectionUnblocked:
		return "connection.unblocked", 0
	case MethodConnectionUpdateSecret:
		return "connection.update-secret", fromClient
	case MethodConnectionUpdateSecretOk:
		return "connection.update-secret-ok", 0
	case MethodChannelOpen:
		return "channel.open", fromClient
	case MethodChannelOpenOk:
		return "channel.open-ok", 0
	case MethodChannelFlow:
		return "channel.flow", fromClient
	case MethodChannelFlowOk:
		return "channel.flow-ok", fromClient
	case MethodChannelClose:
		return "channel.close", fromClient
	case MethodChannelCloseOk:
		return "channel.close-ok", fromClient
	case MethodAccessRequest:
		return "access.request", fromClient
	case MethodAccessRequestOk:
		return "access.request-ok", 0
	case MethodExchangeDeclare:
		return "exchange.declare", fromClient
	case MethodExchangeDeclareOk:
		return "exchange.declare-ok", 0
	case MethodExchangeDelete:
		return "exchange.delete", fromClient
	case MethodExchangeDeleteOk:
		return "exchange.delete-ok", 0
	case MethodExchangeBind:
		return "exchange.bind", fromClient
	case MethodExchangeBindOk:
		return "exchange.bind-ok", 0
	case MethodExchangeUnbind:
		return "exchange.unbind", fromClient
	case MethodExchangeUnbindOk:
		return "exchange.unbind-ok", 0
	case MethodQueueDeclare:
		return "queue.declare", fromClient
	case MethodQueueDeclareOk:
		return "queue.declare-ok", 0
	case MethodQueueBind:
		return "queue.bind", fromClient
	case MethodQueueBindOk:
		return "queue.bind-ok", 0
	case MethodQueuePurge:
		return "queue.purge", fromClient
	case MethodQueuePurgeOk:
		return "queue.purge-ok", 0
	case MethodQueueDelete:
		return "queue.delete", fromClient
	case MethodQueueDeleteOk:
		return "queue.delete-ok", 0
	case MethodQueueUnbind:
		return "queue.unbind", fromClient
	case MethodQueueUnbindOk:
		return "queue.unbind-ok", 0
	case MethodBasicQos:
		return "basic.qos", fromClient
	case MethodBasicQosOk:
		return "basic.qos-ok", 0
	case MethodBasicConsume:
		return "basic.consume", fromClient
	case MethodBasicConsumeOk:
		return "basic.consume-ok", 0
	case MethodBasicCancel:
		return "basic.cancel", fromClient
	case MethodBasicCancelOk:
		return "basic.cancel-ok", fromClient
	case MethodBasicPublish:
		return "basic.publish", fromClient | hasContent
	case MethodBasicReturn:
		return "basic.return", 0 | hasContent
	case MethodBasicDeliver:
		return "basic.deliver", 0 | hasContent
	case MethodBasicGet:
		return "basic.get", fromClient
	case MethodBasicGetOk:
		return "basic.get-ok", 0 | hasContent
	case MethodBasicGetEmpty:
		return "basic.get-empty", 0
	case MethodBasicAck:
		return "basic.ack", fromClient
	case MethodBasicReject:
		return "basic.reject", fromClient
	case MethodBasicRecoverAsync:
		return "basic.recover-async", fromClient
	case MethodBasicRecover:
		return "basic.recover", fromClient
	case MethodBasicRecoverOk:
		return "basic.recover-ok", 0
	case MethodBasicNack:
		return "basic.nack", fromClient
	case MethodConfirmSelect:
		return "confirm.select", fromClient
	case MethodConfirmSelectOk:
		return "confirm.select-ok", 0
	case MethodTxSelect:
		return "tx.select", fromClient
	case MethodTxSelectOk:
		return "tx.select-ok", 0
	case MethodTxCommit:
		return "tx.commit", fromClient
	case MethodTxCommitOk:
		return "tx.commit-ok", 0
	case MethodTxRollback:
		return "tx.rollback", fromClient
	case MethodTxRollbackOk:
		return "tx.rollback-ok", 0
	}
	return "", 0
}

// New returns an empty method of that kind, nil for an unknown one. It allocates:
// it is meant for tools and tests, the sessions name the struct they want.
func New(id MethodID) Method {
	switch id {
	case MethodConnectionStart:
		return new(ConnectionStart)
	case MethodConnectionStartOk:
		return new(ConnectionStartOk)
	case MethodConnectionSecure:
		return new(ConnectionSecure)
	case MethodConnectionSecureOk:
		return new(ConnectionSecureOk)
	case MethodConnectionTune:
		return new(ConnectionTune)
	case MethodConnectionTuneOk:
		return new(ConnectionTuneOk)
	case MethodConnectionOpen:
		return new(ConnectionOpen)
	case MethodConnectionOpenOk:
		return new(ConnectionOpenOk)
	case MethodConnectionClose:
		return new(ConnectionClose)
	case MethodConnectionCloseOk:
		return new(ConnectionCloseOk)
	case MethodConnectionBlocked:
		return new(ConnectionBlocked)
	case MethodConnectionUnblocked:
		return new(ConnectionUnblocked)
	case MethodConnectionUpdateSecret:
		return new(ConnectionUpdateSecret)
	case MethodConnectionUpdateSecretOk:
		return new(ConnectionUpdateSecretOk)
	case MethodChannelOpen:
		return new(ChannelOpen)
	case MethodChannelOpenOk:
		return new(ChannelOpenOk)
	case MethodChannelFlow:
		return new(ChannelFlow)
	case MethodChannelFlowOk:
		return new(ChannelFlowOk)
	case MethodChannelClose:
		return new(ChannelClose)
	case MethodChannelCloseOk:
		return new(ChannelCloseOk)
	case MethodAccessRequest:
		return new(AccessRequest)
	case MethodAccessRequestOk:
		return new(AccessRequestOk)
	case MethodExchangeDeclare:
		return new(ExchangeDeclare)
	case MethodExchangeDeclareOk:
		return new(ExchangeDeclareOk)
	case MethodExchangeDelete:
		return new(ExchangeDelete)
	case MethodExchangeDeleteOk:
		return new(ExchangeDeleteOk)
	case MethodExchangeBind:
		return new(ExchangeBind)
	case MethodExchangeBindOk:
		return new(ExchangeBindOk)
	case MethodExchangeUnbind:
		return new(ExchangeUnbind)
	case MethodExchangeUnbindOk:
		return new(ExchangeUnbindOk)
	case MethodQueueDeclare:
		return new(QueueDeclare)
	case MethodQueueDeclareOk:
		return new(QueueDeclareOk)
	case MethodQueueBind:
		return new(QueueBind)
	case MethodQueueBindOk:
		return new(QueueBindOk)
	case MethodQueuePurge:
		return new(QueuePurge)
	case MethodQueuePurgeOk:
		return new(QueuePurgeOk)
	case MethodQueueDelete:
		return new(QueueDelete)
	case MethodQueueDeleteOk:
		return new(QueueDeleteOk)
	case MethodQueueUnbind:
		return new(QueueUnbind)
	case MethodQueueUnbindOk:
		return new(QueueUnbindOk)
	case MethodBasicQos:
		return new(BasicQos)
	case MethodBasicQosOk:
		return new(BasicQosOk)
	case MethodBasicConsume:
		return new(BasicConsume)
	case MethodBasicConsumeOk:
		return new(BasicConsumeOk)
	case MethodBasicCancel:
		return new(BasicCancel)
	case MethodBasicCancelOk:
		return new(BasicCancelOk)
	case MethodBasicPublish:
		return new(BasicPublish)
	case MethodBasicReturn:
		return new(BasicReturn)
	case MethodBasicDeliver:
		return new(BasicDeliver)
	case MethodBasicGet:
		return new(BasicGet)
	case MethodBasicGetOk:
		return new(BasicGetOk)
	case MethodBasicGetEmpty:
		return new(BasicGetEmpty)
	case MethodBasicAck:
		return new(BasicAck)
	case MethodBasicReject:
		return new(BasicReject)
	case MethodBasicRecoverAsync:
		return new(BasicRecoverAsync)
	case MethodBasicRecover:
		return new(BasicRecover)
	case MethodBasicRecoverOk:
		return new(BasicRecoverOk)
	case MethodBasicNack:
		return new(BasicNack)
	case MethodConfirmSelect:
		return new(ConfirmSelect)
	case MethodConfirmSelectOk:
		return new(ConfirmSelectOk)
	case MethodTxSelect:
		return new(TxSelect)
	case MethodTxSelectOk:
		return new(TxSelectOk)
	case MethodTxCommit:
		return new(TxCommit)
	case MethodTxCommitOk:
		return new(TxCommitOk)
	case MethodTxRollback:
		return new(TxRollback)
	case MethodTxRollbackOk:
		return new(TxRollbackOk)
	}
	return nil
}

// Methods lists every method identifier, in ascending order.
func Methods() []MethodID {
	return []MethodID{
		MethodConnectionStart,
		MethodConnectionStartOk,
		MethodConnectionSecure,
		MethodConnectionSecureOk,
		MethodConnectionTune,
		MethodConnectionTuneOk,
		MethodConnectionOpen,
		MethodConnectionOpenOk,
		MethodConnectionClose,
		MethodConnectionCloseOk,
		MethodConnectionBlocked,
		MethodConnectionUnblocked,
		MethodConnectionUpdateSecret,
		MethodConnectionUpdateSecretOk,
		MethodChannelOpen,
		MethodChannelOpenOk,
		MethodChannelFlow,
		MethodChannelFlowOk,
		MethodChannelClose,
		MethodChannelCloseOk,
		MethodAccessRequest,
		MethodAccessRequestOk,
		MethodExchangeDeclare,
		MethodExchangeDeclareOk,
		MethodExchangeDelete,
		MethodExchangeDeleteOk,
		MethodExchangeBind,
		MethodExchangeBindOk,
		MethodExchangeUnbind,
		MethodExchangeUnbindOk,
		MethodQueueDeclare,
		MethodQueueDeclareOk,
		MethodQueueBind,
		MethodQueueBindOk,
		MethodQueuePurge,
		MethodQueuePurgeOk,
		MethodQueueDelete,
		MethodQueueDeleteOk,
		MethodQueueUnbind,
		MethodQueueUnbindOk,
		MethodBasicQos,
		MethodBasicQosOk,
		MethodBasicConsume,
		MethodBasicConsumeOk,
		MethodBasicCancel,
		MethodBasicCancelOk,
		MethodBasicPublish,
		MethodBasicReturn,
		MethodBasicDeliver,
		MethodBasicGet,
		MethodBasicGetOk,
		MethodBasicGetEmpty,
		MethodBasicAck,
		MethodBasicReject,
		MethodBasicRecoverAsync,
		MethodBasicRecover,
		MethodBasicRecoverOk,
		MethodBasicNack,
		MethodConfirmSelect,
		MethodConfirmSelectOk,
		MethodTxSelect,
		MethodTxSelectOk,
		MethodTxCommit,
		MethodTxCommitOk,
		MethodTxRollback,
		MethodTxRollbackOk,
	}
}
