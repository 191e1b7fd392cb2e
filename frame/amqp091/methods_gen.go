// Code generated from gen/methods.txt. DO NOT EDIT.

//ringmq:hot

package amqp091

import "encoding/binary"

// ConnectionStart is connection.start (10.10), sent by servers.
type ConnectionStart struct {
	VersionMajor     uint8
	VersionMinor     uint8
	ServerProperties Table
	Mechanisms       []byte
	Locales          []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionStart) Decode(args []byte) error {
	if len(args) < 6 {
		return ErrTruncated
	}
	m.VersionMajor = args[0]
	m.VersionMinor = args[1]
	{
		n := binary.BigEndian.Uint32(args[2:])
		if uint64(n) > uint64(len(args)-6) {
			return ErrTruncated
		}
		end := 6 + int(n)
		m.ServerProperties = args[6:end:end]
		if err := m.ServerProperties.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.Mechanisms = args[4:end:end]
		args = args[end:]
	}
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.Locales = args[4:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionStart) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 10)
	dst = append(dst, m.VersionMajor)
	dst = append(dst, m.VersionMinor)
	dst = appendLong(dst, m.ServerProperties)
	dst = appendLong(dst, m.Mechanisms)
	dst = appendLong(dst, m.Locales)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionStart.
func (m *ConnectionStart) ID() MethodID { return MethodConnectionStart }

// ConnectionStartOk is connection.start-ok (10.11), sent by clients.
type ConnectionStartOk struct {
	ClientProperties Table
	Mechanism        []byte
	Response         []byte
	Locale           []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionStartOk) Decode(args []byte) error {
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.ClientProperties = args[4:end:end]
		if err := m.ClientProperties.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Mechanism = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.Response = args[4:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Locale = args[1:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionStartOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 11)
	dst = appendLong(dst, m.ClientProperties)
	dst = appendShort(dst, m.Mechanism)
	dst = appendLong(dst, m.Response)
	dst = appendShort(dst, m.Locale)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionStartOk.
func (m *ConnectionStartOk) ID() MethodID { return MethodConnectionStartOk }

// ConnectionSecure is connection.secure (10.20), sent by servers.
type ConnectionSecure struct {
	Challenge []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionSecure) Decode(args []byte) error {
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.Challenge = args[4:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionSecure) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 20)
	dst = appendLong(dst, m.Challenge)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionSecure.
func (m *ConnectionSecure) ID() MethodID { return MethodConnectionSecure }

// ConnectionSecureOk is connection.secure-ok (10.21), sent by clients.
type ConnectionSecureOk struct {
	Response []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionSecureOk) Decode(args []byte) error {
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.Response = args[4:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionSecureOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 21)
	dst = appendLong(dst, m.Response)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionSecureOk.
func (m *ConnectionSecureOk) ID() MethodID { return MethodConnectionSecureOk }

// ConnectionTune is connection.tune (10.30), sent by servers.
type ConnectionTune struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionTune) Decode(args []byte) error {
	if len(args) < 8 {
		return ErrTruncated
	}
	m.ChannelMax = binary.BigEndian.Uint16(args[0:])
	m.FrameMax = binary.BigEndian.Uint32(args[2:])
	m.Heartbeat = binary.BigEndian.Uint16(args[6:])
	args = args[8:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionTune) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 30)
	dst = binary.BigEndian.AppendUint16(dst, m.ChannelMax)
	dst = binary.BigEndian.AppendUint32(dst, m.FrameMax)
	dst = binary.BigEndian.AppendUint16(dst, m.Heartbeat)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionTune.
func (m *ConnectionTune) ID() MethodID { return MethodConnectionTune }

// ConnectionTuneOk is connection.tune-ok (10.31), sent by clients.
type ConnectionTuneOk struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionTuneOk) Decode(args []byte) error {
	if len(args) < 8 {
		return ErrTruncated
	}
	m.ChannelMax = binary.BigEndian.Uint16(args[0:])
	m.FrameMax = binary.BigEndian.Uint32(args[2:])
	m.Heartbeat = binary.BigEndian.Uint16(args[6:])
	args = args[8:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionTuneOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 31)
	dst = binary.BigEndian.AppendUint16(dst, m.ChannelMax)
	dst = binary.BigEndian.AppendUint32(dst, m.FrameMax)
	dst = binary.BigEndian.AppendUint16(dst, m.Heartbeat)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionTuneOk.
func (m *ConnectionTuneOk) ID() MethodID { return MethodConnectionTuneOk }

// ConnectionOpen is connection.open (10.40), sent by clients.
type ConnectionOpen struct {
	VirtualHost []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionOpen) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.VirtualHost = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionOpen) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 40)
	dst = appendShort(dst, m.VirtualHost)
	dst = append(dst, 0)
	{
		var bits byte
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodConnectionOpen.
func (m *ConnectionOpen) ID() MethodID { return MethodConnectionOpen }

// ConnectionOpenOk is connection.open-ok (10.41), sent by servers.
type ConnectionOpenOk struct {
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionOpenOk) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionOpenOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 41)
	dst = append(dst, 0)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionOpenOk.
func (m *ConnectionOpenOk) ID() MethodID { return MethodConnectionOpenOk }

// ConnectionClose is connection.close (10.50), sent by both peers.
type ConnectionClose struct {
	ReplyCode    uint16
	ReplyText    []byte
	FailedClass  uint16
	FailedMethod uint16
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionClose) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	m.ReplyCode = binary.BigEndian.Uint16(args[0:])
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.ReplyText = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 4 {
		return ErrTruncated
	}
	m.FailedClass = binary.BigEndian.Uint16(args[0:])
	m.FailedMethod = binary.BigEndian.Uint16(args[2:])
	args = args[4:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionClose) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 50)
	dst = binary.BigEndian.AppendUint16(dst, m.ReplyCode)
	dst = appendShort(dst, m.ReplyText)
	dst = binary.BigEndian.AppendUint16(dst, m.FailedClass)
	dst = binary.BigEndian.AppendUint16(dst, m.FailedMethod)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionClose.
func (m *ConnectionClose) ID() MethodID { return MethodConnectionClose }

// ConnectionCloseOk is connection.close-ok (10.51), sent by both peers.
type ConnectionCloseOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ConnectionCloseOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionCloseOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 51)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionCloseOk.
func (m *ConnectionCloseOk) ID() MethodID { return MethodConnectionCloseOk }

// ConnectionBlocked is connection.blocked (10.60), sent by servers.
type ConnectionBlocked struct {
	Reason []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionBlocked) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Reason = args[1:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionBlocked) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 60)
	dst = appendShort(dst, m.Reason)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionBlocked.
func (m *ConnectionBlocked) ID() MethodID { return MethodConnectionBlocked }

// ConnectionUnblocked is connection.unblocked (10.61), sent by servers.
type ConnectionUnblocked struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ConnectionUnblocked) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionUnblocked) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 61)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionUnblocked.
func (m *ConnectionUnblocked) ID() MethodID { return MethodConnectionUnblocked }

// ConnectionUpdateSecret is connection.update-secret (10.70), sent by clients.
type ConnectionUpdateSecret struct {
	NewSecret []byte
	Reason    []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConnectionUpdateSecret) Decode(args []byte) error {
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.NewSecret = args[4:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Reason = args[1:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionUpdateSecret) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 70)
	dst = appendLong(dst, m.NewSecret)
	dst = appendShort(dst, m.Reason)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionUpdateSecret.
func (m *ConnectionUpdateSecret) ID() MethodID { return MethodConnectionUpdateSecret }

// ConnectionUpdateSecretOk is connection.update-secret-ok (10.71), sent by servers.
type ConnectionUpdateSecretOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ConnectionUpdateSecretOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConnectionUpdateSecretOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 10, 0, 71)
	return finishFrame(dst, start)
}

// ID returns MethodConnectionUpdateSecretOk.
func (m *ConnectionUpdateSecretOk) ID() MethodID { return MethodConnectionUpdateSecretOk }

// ChannelOpen is channel.open (20.10), sent by clients.
type ChannelOpen struct {
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ChannelOpen) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ChannelOpen) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 20, 0, 10)
	dst = append(dst, 0)
	return finishFrame(dst, start)
}

// ID returns MethodChannelOpen.
func (m *ChannelOpen) ID() MethodID { return MethodChannelOpen }

// ChannelOpenOk is channel.open-ok (20.11), sent by servers.
type ChannelOpenOk struct {
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ChannelOpenOk) Decode(args []byte) error {
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ChannelOpenOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 20, 0, 11)
	dst = append(dst, 0, 0, 0, 0)
	return finishFrame(dst, start)
}

// ID returns MethodChannelOpenOk.
func (m *ChannelOpenOk) ID() MethodID { return MethodChannelOpenOk }

// ChannelFlow is channel.flow (20.20), sent by both peers.
type ChannelFlow struct {
	Active bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ChannelFlow) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	m.Active = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ChannelFlow) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 20, 0, 20)
	{
		var bits byte
		if m.Active {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodChannelFlow.
func (m *ChannelFlow) ID() MethodID { return MethodChannelFlow }

// ChannelFlowOk is channel.flow-ok (20.21), sent by both peers.
type ChannelFlowOk struct {
	Active bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ChannelFlowOk) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	m.Active = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ChannelFlowOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 20, 0, 21)
	{
		var bits byte
		if m.Active {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodChannelFlowOk.
func (m *ChannelFlowOk) ID() MethodID { return MethodChannelFlowOk }

// ChannelClose is channel.close (20.40), sent by both peers.
type ChannelClose struct {
	ReplyCode    uint16
	ReplyText    []byte
	FailedClass  uint16
	FailedMethod uint16
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ChannelClose) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	m.ReplyCode = binary.BigEndian.Uint16(args[0:])
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.ReplyText = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 4 {
		return ErrTruncated
	}
	m.FailedClass = binary.BigEndian.Uint16(args[0:])
	m.FailedMethod = binary.BigEndian.Uint16(args[2:])
	args = args[4:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ChannelClose) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 20, 0, 40)
	dst = binary.BigEndian.AppendUint16(dst, m.ReplyCode)
	dst = appendShort(dst, m.ReplyText)
	dst = binary.BigEndian.AppendUint16(dst, m.FailedClass)
	dst = binary.BigEndian.AppendUint16(dst, m.FailedMethod)
	return finishFrame(dst, start)
}

// ID returns MethodChannelClose.
func (m *ChannelClose) ID() MethodID { return MethodChannelClose }

// ChannelCloseOk is channel.close-ok (20.41), sent by both peers.
type ChannelCloseOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ChannelCloseOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ChannelCloseOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 20, 0, 41)
	return finishFrame(dst, start)
}

// ID returns MethodChannelCloseOk.
func (m *ChannelCloseOk) ID() MethodID { return MethodChannelCloseOk }

// AccessRequest is access.request (30.10), sent by clients.
type AccessRequest struct {
	Realm     []byte
	Exclusive bool
	Passive   bool
	Active    bool
	Write     bool
	Read      bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *AccessRequest) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Realm = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	m.Exclusive = args[0]&1 != 0
	m.Passive = args[0]&2 != 0
	m.Active = args[0]&4 != 0
	m.Write = args[0]&8 != 0
	m.Read = args[0]&16 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *AccessRequest) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 30, 0, 10)
	dst = appendShort(dst, m.Realm)
	{
		var bits byte
		if m.Exclusive {
			bits |= 1
		}
		if m.Passive {
			bits |= 2
		}
		if m.Active {
			bits |= 4
		}
		if m.Write {
			bits |= 8
		}
		if m.Read {
			bits |= 16
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodAccessRequest.
func (m *AccessRequest) ID() MethodID { return MethodAccessRequest }

// AccessRequestOk is access.request-ok (30.11), sent by servers.
type AccessRequestOk struct {
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *AccessRequestOk) Decode(args []byte) error {
	if len(args) < 2 {
		return ErrTruncated
	}
	args = args[2:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *AccessRequestOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 30, 0, 11)
	dst = binary.BigEndian.AppendUint16(dst, 1)
	return finishFrame(dst, start)
}

// ID returns MethodAccessRequestOk.
func (m *AccessRequestOk) ID() MethodID { return MethodAccessRequestOk }

// ExchangeDeclare is exchange.declare (40.10), sent by clients.
type ExchangeDeclare struct {
	Exchange   []byte
	Type       []byte
	Passive    bool
	Durable    bool
	AutoDelete bool
	Internal   bool
	NoWait     bool
	Arguments  Table
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ExchangeDeclare) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Type = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 5 {
		return ErrTruncated
	}
	m.Passive = args[0]&1 != 0
	m.Durable = args[0]&2 != 0
	m.AutoDelete = args[0]&4 != 0
	m.Internal = args[0]&8 != 0
	m.NoWait = args[0]&16 != 0
	{
		n := binary.BigEndian.Uint32(args[1:])
		if uint64(n) > uint64(len(args)-5) {
			return ErrTruncated
		}
		end := 5 + int(n)
		m.Arguments = args[5:end:end]
		if err := m.Arguments.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeDeclare) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 10)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.Type)
	{
		var bits byte
		if m.Passive {
			bits |= 1
		}
		if m.Durable {
			bits |= 2
		}
		if m.AutoDelete {
			bits |= 4
		}
		if m.Internal {
			bits |= 8
		}
		if m.NoWait {
			bits |= 16
		}
		dst = append(dst, bits)
	}
	dst = appendLong(dst, m.Arguments)
	return finishFrame(dst, start)
}

// ID returns MethodExchangeDeclare.
func (m *ExchangeDeclare) ID() MethodID { return MethodExchangeDeclare }

// ExchangeDeclareOk is exchange.declare-ok (40.11), sent by servers.
type ExchangeDeclareOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ExchangeDeclareOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeDeclareOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 11)
	return finishFrame(dst, start)
}

// ID returns MethodExchangeDeclareOk.
func (m *ExchangeDeclareOk) ID() MethodID { return MethodExchangeDeclareOk }

// ExchangeDelete is exchange.delete (40.20), sent by clients.
type ExchangeDelete struct {
	Exchange []byte
	IfUnused bool
	NoWait   bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ExchangeDelete) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	m.IfUnused = args[0]&1 != 0
	m.NoWait = args[0]&2 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeDelete) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 20)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Exchange)
	{
		var bits byte
		if m.IfUnused {
			bits |= 1
		}
		if m.NoWait {
			bits |= 2
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodExchangeDelete.
func (m *ExchangeDelete) ID() MethodID { return MethodExchangeDelete }

// ExchangeDeleteOk is exchange.delete-ok (40.21), sent by servers.
type ExchangeDeleteOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ExchangeDeleteOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeDeleteOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 21)
	return finishFrame(dst, start)
}

// ID returns MethodExchangeDeleteOk.
func (m *ExchangeDeleteOk) ID() MethodID { return MethodExchangeDeleteOk }

// ExchangeBind is exchange.bind (40.30), sent by clients.
type ExchangeBind struct {
	Destination []byte
	Source      []byte
	RoutingKey  []byte
	NoWait      bool
	Arguments   Table
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ExchangeBind) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Destination = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Source = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 5 {
		return ErrTruncated
	}
	m.NoWait = args[0]&1 != 0
	{
		n := binary.BigEndian.Uint32(args[1:])
		if uint64(n) > uint64(len(args)-5) {
			return ErrTruncated
		}
		end := 5 + int(n)
		m.Arguments = args[5:end:end]
		if err := m.Arguments.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeBind) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 30)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Destination)
	dst = appendShort(dst, m.Source)
	dst = appendShort(dst, m.RoutingKey)
	{
		var bits byte
		if m.NoWait {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	dst = appendLong(dst, m.Arguments)
	return finishFrame(dst, start)
}

// ID returns MethodExchangeBind.
func (m *ExchangeBind) ID() MethodID { return MethodExchangeBind }

// ExchangeBindOk is exchange.bind-ok (40.31), sent by servers.
type ExchangeBindOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ExchangeBindOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeBindOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 31)
	return finishFrame(dst, start)
}

// ID returns MethodExchangeBindOk.
func (m *ExchangeBindOk) ID() MethodID { return MethodExchangeBindOk }

// ExchangeUnbind is exchange.unbind (40.40), sent by clients.
type ExchangeUnbind struct {
	Destination []byte
	Source      []byte
	RoutingKey  []byte
	NoWait      bool
	Arguments   Table
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ExchangeUnbind) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Destination = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Source = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 5 {
		return ErrTruncated
	}
	m.NoWait = args[0]&1 != 0
	{
		n := binary.BigEndian.Uint32(args[1:])
		if uint64(n) > uint64(len(args)-5) {
			return ErrTruncated
		}
		end := 5 + int(n)
		m.Arguments = args[5:end:end]
		if err := m.Arguments.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeUnbind) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 40)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Destination)
	dst = appendShort(dst, m.Source)
	dst = appendShort(dst, m.RoutingKey)
	{
		var bits byte
		if m.NoWait {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	dst = appendLong(dst, m.Arguments)
	return finishFrame(dst, start)
}

// ID returns MethodExchangeUnbind.
func (m *ExchangeUnbind) ID() MethodID { return MethodExchangeUnbind }

// ExchangeUnbindOk is exchange.unbind-ok (40.51), sent by servers.
type ExchangeUnbindOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ExchangeUnbindOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ExchangeUnbindOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 40, 0, 51)
	return finishFrame(dst, start)
}

// ID returns MethodExchangeUnbindOk.
func (m *ExchangeUnbindOk) ID() MethodID { return MethodExchangeUnbindOk }

// QueueDeclare is queue.declare (50.10), sent by clients.
type QueueDeclare struct {
	Queue      []byte
	Passive    bool
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	NoWait     bool
	Arguments  Table
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueueDeclare) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 5 {
		return ErrTruncated
	}
	m.Passive = args[0]&1 != 0
	m.Durable = args[0]&2 != 0
	m.Exclusive = args[0]&4 != 0
	m.AutoDelete = args[0]&8 != 0
	m.NoWait = args[0]&16 != 0
	{
		n := binary.BigEndian.Uint32(args[1:])
		if uint64(n) > uint64(len(args)-5) {
			return ErrTruncated
		}
		end := 5 + int(n)
		m.Arguments = args[5:end:end]
		if err := m.Arguments.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueDeclare) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 10)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Queue)
	{
		var bits byte
		if m.Passive {
			bits |= 1
		}
		if m.Durable {
			bits |= 2
		}
		if m.Exclusive {
			bits |= 4
		}
		if m.AutoDelete {
			bits |= 8
		}
		if m.NoWait {
			bits |= 16
		}
		dst = append(dst, bits)
	}
	dst = appendLong(dst, m.Arguments)
	return finishFrame(dst, start)
}

// ID returns MethodQueueDeclare.
func (m *QueueDeclare) ID() MethodID { return MethodQueueDeclare }

// QueueDeclareOk is queue.declare-ok (50.11), sent by servers.
type QueueDeclareOk struct {
	Queue         []byte
	MessageCount  uint32
	ConsumerCount uint32
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueueDeclareOk) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 8 {
		return ErrTruncated
	}
	m.MessageCount = binary.BigEndian.Uint32(args[0:])
	m.ConsumerCount = binary.BigEndian.Uint32(args[4:])
	args = args[8:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueDeclareOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 11)
	dst = appendShort(dst, m.Queue)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	dst = binary.BigEndian.AppendUint32(dst, m.ConsumerCount)
	return finishFrame(dst, start)
}

// ID returns MethodQueueDeclareOk.
func (m *QueueDeclareOk) ID() MethodID { return MethodQueueDeclareOk }

// QueueBind is queue.bind (50.20), sent by clients.
type QueueBind struct {
	Queue      []byte
	Exchange   []byte
	RoutingKey []byte
	NoWait     bool
	Arguments  Table
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueueBind) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 5 {
		return ErrTruncated
	}
	m.NoWait = args[0]&1 != 0
	{
		n := binary.BigEndian.Uint32(args[1:])
		if uint64(n) > uint64(len(args)-5) {
			return ErrTruncated
		}
		end := 5 + int(n)
		m.Arguments = args[5:end:end]
		if err := m.Arguments.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueBind) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 20)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Queue)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	{
		var bits byte
		if m.NoWait {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	dst = appendLong(dst, m.Arguments)
	return finishFrame(dst, start)
}

// ID returns MethodQueueBind.
func (m *QueueBind) ID() MethodID { return MethodQueueBind }

// QueueBindOk is queue.bind-ok (50.21), sent by servers.
type QueueBindOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *QueueBindOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueBindOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 21)
	return finishFrame(dst, start)
}

// ID returns MethodQueueBindOk.
func (m *QueueBindOk) ID() MethodID { return MethodQueueBindOk }

// QueuePurge is queue.purge (50.30), sent by clients.
type QueuePurge struct {
	Queue  []byte
	NoWait bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueuePurge) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	m.NoWait = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueuePurge) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 30)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Queue)
	{
		var bits byte
		if m.NoWait {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodQueuePurge.
func (m *QueuePurge) ID() MethodID { return MethodQueuePurge }

// QueuePurgeOk is queue.purge-ok (50.31), sent by servers.
type QueuePurgeOk struct {
	MessageCount uint32
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueuePurgeOk) Decode(args []byte) error {
	if len(args) < 4 {
		return ErrTruncated
	}
	m.MessageCount = binary.BigEndian.Uint32(args[0:])
	args = args[4:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueuePurgeOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 31)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	return finishFrame(dst, start)
}

// ID returns MethodQueuePurgeOk.
func (m *QueuePurgeOk) ID() MethodID { return MethodQueuePurgeOk }

// QueueDelete is queue.delete (50.40), sent by clients.
type QueueDelete struct {
	Queue    []byte
	IfUnused bool
	IfEmpty  bool
	NoWait   bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueueDelete) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	m.IfUnused = args[0]&1 != 0
	m.IfEmpty = args[0]&2 != 0
	m.NoWait = args[0]&4 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueDelete) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 40)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Queue)
	{
		var bits byte
		if m.IfUnused {
			bits |= 1
		}
		if m.IfEmpty {
			bits |= 2
		}
		if m.NoWait {
			bits |= 4
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodQueueDelete.
func (m *QueueDelete) ID() MethodID { return MethodQueueDelete }

// QueueDeleteOk is queue.delete-ok (50.41), sent by servers.
type QueueDeleteOk struct {
	MessageCount uint32
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueueDeleteOk) Decode(args []byte) error {
	if len(args) < 4 {
		return ErrTruncated
	}
	m.MessageCount = binary.BigEndian.Uint32(args[0:])
	args = args[4:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueDeleteOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 41)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	return finishFrame(dst, start)
}

// ID returns MethodQueueDeleteOk.
func (m *QueueDeleteOk) ID() MethodID { return MethodQueueDeleteOk }

// QueueUnbind is queue.unbind (50.50), sent by clients.
type QueueUnbind struct {
	Queue      []byte
	Exchange   []byte
	RoutingKey []byte
	Arguments  Table
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *QueueUnbind) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 4 {
		return ErrTruncated
	}
	{
		n := binary.BigEndian.Uint32(args[0:])
		if uint64(n) > uint64(len(args)-4) {
			return ErrTruncated
		}
		end := 4 + int(n)
		m.Arguments = args[4:end:end]
		if err := m.Arguments.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueUnbind) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 50)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Queue)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	dst = appendLong(dst, m.Arguments)
	return finishFrame(dst, start)
}

// ID returns MethodQueueUnbind.
func (m *QueueUnbind) ID() MethodID { return MethodQueueUnbind }

// QueueUnbindOk is queue.unbind-ok (50.51), sent by servers.
type QueueUnbindOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *QueueUnbindOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *QueueUnbindOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 50, 0, 51)
	return finishFrame(dst, start)
}

// ID returns MethodQueueUnbindOk.
func (m *QueueUnbindOk) ID() MethodID { return MethodQueueUnbindOk }

// BasicQos is basic.qos (60.10), sent by clients.
type BasicQos struct {
	PrefetchSize  uint32
	PrefetchCount uint16
	Global        bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicQos) Decode(args []byte) error {
	if len(args) < 7 {
		return ErrTruncated
	}
	m.PrefetchSize = binary.BigEndian.Uint32(args[0:])
	m.PrefetchCount = binary.BigEndian.Uint16(args[4:])
	m.Global = args[6]&1 != 0
	args = args[7:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicQos) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 10)
	dst = binary.BigEndian.AppendUint32(dst, m.PrefetchSize)
	dst = binary.BigEndian.AppendUint16(dst, m.PrefetchCount)
	{
		var bits byte
		if m.Global {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicQos.
func (m *BasicQos) ID() MethodID { return MethodBasicQos }

// BasicQosOk is basic.qos-ok (60.11), sent by servers.
type BasicQosOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *BasicQosOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicQosOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 11)
	return finishFrame(dst, start)
}

// ID returns MethodBasicQosOk.
func (m *BasicQosOk) ID() MethodID { return MethodBasicQosOk }

// BasicConsume is basic.consume (60.20), sent by clients.
type BasicConsume struct {
	Queue       []byte
	ConsumerTag []byte
	NoLocal     bool
	NoAck       bool
	Exclusive   bool
	NoWait      bool
	Arguments   Table
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicConsume) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.ConsumerTag = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 5 {
		return ErrTruncated
	}
	m.NoLocal = args[0]&1 != 0
	m.NoAck = args[0]&2 != 0
	m.Exclusive = args[0]&4 != 0
	m.NoWait = args[0]&8 != 0
	{
		n := binary.BigEndian.Uint32(args[1:])
		if uint64(n) > uint64(len(args)-5) {
			return ErrTruncated
		}
		end := 5 + int(n)
		m.Arguments = args[5:end:end]
		if err := m.Arguments.Validate(); err != nil {
			return err
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicConsume) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 20)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Queue)
	dst = appendShort(dst, m.ConsumerTag)
	{
		var bits byte
		if m.NoLocal {
			bits |= 1
		}
		if m.NoAck {
			bits |= 2
		}
		if m.Exclusive {
			bits |= 4
		}
		if m.NoWait {
			bits |= 8
		}
		dst = append(dst, bits)
	}
	dst = appendLong(dst, m.Arguments)
	return finishFrame(dst, start)
}

// ID returns MethodBasicConsume.
func (m *BasicConsume) ID() MethodID { return MethodBasicConsume }

// BasicConsumeOk is basic.consume-ok (60.21), sent by servers.
type BasicConsumeOk struct {
	ConsumerTag []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicConsumeOk) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.ConsumerTag = args[1:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicConsumeOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 21)
	dst = appendShort(dst, m.ConsumerTag)
	return finishFrame(dst, start)
}

// ID returns MethodBasicConsumeOk.
func (m *BasicConsumeOk) ID() MethodID { return MethodBasicConsumeOk }

// BasicCancel is basic.cancel (60.30), sent by both peers.
type BasicCancel struct {
	ConsumerTag []byte
	NoWait      bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicCancel) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.ConsumerTag = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	m.NoWait = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicCancel) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 30)
	dst = appendShort(dst, m.ConsumerTag)
	{
		var bits byte
		if m.NoWait {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicCancel.
func (m *BasicCancel) ID() MethodID { return MethodBasicCancel }

// BasicCancelOk is basic.cancel-ok (60.31), sent by both peers.
type BasicCancelOk struct {
	ConsumerTag []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicCancelOk) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.ConsumerTag = args[1:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicCancelOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 31)
	dst = appendShort(dst, m.ConsumerTag)
	return finishFrame(dst, start)
}

// ID returns MethodBasicCancelOk.
func (m *BasicCancelOk) ID() MethodID { return MethodBasicCancelOk }

// BasicPublish is basic.publish (60.40), sent by clients, followed by content.
type BasicPublish struct {
	Exchange   []byte
	RoutingKey []byte
	Mandatory  bool
	Immediate  bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicPublish) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	m.Mandatory = args[0]&1 != 0
	m.Immediate = args[0]&2 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicPublish) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 40)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	{
		var bits byte
		if m.Mandatory {
			bits |= 1
		}
		if m.Immediate {
			bits |= 2
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicPublish.
func (m *BasicPublish) ID() MethodID { return MethodBasicPublish }

// BasicReturn is basic.return (60.50), sent by servers, followed by content.
type BasicReturn struct {
	ReplyCode  uint16
	ReplyText  []byte
	Exchange   []byte
	RoutingKey []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicReturn) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	m.ReplyCode = binary.BigEndian.Uint16(args[0:])
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.ReplyText = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicReturn) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 50)
	dst = binary.BigEndian.AppendUint16(dst, m.ReplyCode)
	dst = appendShort(dst, m.ReplyText)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	return finishFrame(dst, start)
}

// ID returns MethodBasicReturn.
func (m *BasicReturn) ID() MethodID { return MethodBasicReturn }

// BasicDeliver is basic.deliver (60.60), sent by servers, followed by content.
type BasicDeliver struct {
	ConsumerTag []byte
	DeliveryTag uint64
	Redelivered bool
	Exchange    []byte
	RoutingKey  []byte
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicDeliver) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.ConsumerTag = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 10 {
		return ErrTruncated
	}
	m.DeliveryTag = binary.BigEndian.Uint64(args[0:])
	m.Redelivered = args[8]&1 != 0
	{
		end := 10 + int(args[9])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[10:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicDeliver) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 60)
	dst = appendShort(dst, m.ConsumerTag)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	{
		var bits byte
		if m.Redelivered {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	return finishFrame(dst, start)
}

// ID returns MethodBasicDeliver.
func (m *BasicDeliver) ID() MethodID { return MethodBasicDeliver }

// BasicGet is basic.get (60.70), sent by clients.
type BasicGet struct {
	Queue []byte
	NoAck bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicGet) Decode(args []byte) error {
	if len(args) < 3 {
		return ErrTruncated
	}
	{
		end := 3 + int(args[2])
		if len(args) < end {
			return ErrTruncated
		}
		m.Queue = args[3:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	m.NoAck = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicGet) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 70)
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = appendShort(dst, m.Queue)
	{
		var bits byte
		if m.NoAck {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicGet.
func (m *BasicGet) ID() MethodID { return MethodBasicGet }

// BasicGetOk is basic.get-ok (60.71), sent by servers, followed by content.
type BasicGetOk struct {
	DeliveryTag  uint64
	Redelivered  bool
	Exchange     []byte
	RoutingKey   []byte
	MessageCount uint32
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicGetOk) Decode(args []byte) error {
	if len(args) < 10 {
		return ErrTruncated
	}
	m.DeliveryTag = binary.BigEndian.Uint64(args[0:])
	m.Redelivered = args[8]&1 != 0
	{
		end := 10 + int(args[9])
		if len(args) < end {
			return ErrTruncated
		}
		m.Exchange = args[10:end:end]
		args = args[end:]
	}
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		m.RoutingKey = args[1:end:end]
		args = args[end:]
	}
	if len(args) < 4 {
		return ErrTruncated
	}
	m.MessageCount = binary.BigEndian.Uint32(args[0:])
	args = args[4:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicGetOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 71)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	{
		var bits byte
		if m.Redelivered {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	dst = binary.BigEndian.AppendUint32(dst, m.MessageCount)
	return finishFrame(dst, start)
}

// ID returns MethodBasicGetOk.
func (m *BasicGetOk) ID() MethodID { return MethodBasicGetOk }

// BasicGetEmpty is basic.get-empty (60.72), sent by servers.
type BasicGetEmpty struct {
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicGetEmpty) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	{
		end := 1 + int(args[0])
		if len(args) < end {
			return ErrTruncated
		}
		args = args[end:]
	}
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicGetEmpty) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 72)
	dst = append(dst, 0)
	return finishFrame(dst, start)
}

// ID returns MethodBasicGetEmpty.
func (m *BasicGetEmpty) ID() MethodID { return MethodBasicGetEmpty }

// BasicAck is basic.ack (60.80), sent by both peers.
type BasicAck struct {
	DeliveryTag uint64
	Multiple    bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicAck) Decode(args []byte) error {
	if len(args) < 9 {
		return ErrTruncated
	}
	m.DeliveryTag = binary.BigEndian.Uint64(args[0:])
	m.Multiple = args[8]&1 != 0
	args = args[9:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicAck) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 80)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	{
		var bits byte
		if m.Multiple {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicAck.
func (m *BasicAck) ID() MethodID { return MethodBasicAck }

// BasicReject is basic.reject (60.90), sent by clients.
type BasicReject struct {
	DeliveryTag uint64
	Requeue     bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicReject) Decode(args []byte) error {
	if len(args) < 9 {
		return ErrTruncated
	}
	m.DeliveryTag = binary.BigEndian.Uint64(args[0:])
	m.Requeue = args[8]&1 != 0
	args = args[9:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicReject) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 90)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	{
		var bits byte
		if m.Requeue {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicReject.
func (m *BasicReject) ID() MethodID { return MethodBasicReject }

// BasicRecoverAsync is basic.recover-async (60.100), sent by clients.
type BasicRecoverAsync struct {
	Requeue bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicRecoverAsync) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	m.Requeue = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicRecoverAsync) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 100)
	{
		var bits byte
		if m.Requeue {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicRecoverAsync.
func (m *BasicRecoverAsync) ID() MethodID { return MethodBasicRecoverAsync }

// BasicRecover is basic.recover (60.110), sent by clients.
type BasicRecover struct {
	Requeue bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicRecover) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	m.Requeue = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicRecover) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 110)
	{
		var bits byte
		if m.Requeue {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicRecover.
func (m *BasicRecover) ID() MethodID { return MethodBasicRecover }

// BasicRecoverOk is basic.recover-ok (60.111), sent by servers.
type BasicRecoverOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *BasicRecoverOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicRecoverOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 111)
	return finishFrame(dst, start)
}

// ID returns MethodBasicRecoverOk.
func (m *BasicRecoverOk) ID() MethodID { return MethodBasicRecoverOk }

// BasicNack is basic.nack (60.120), sent by both peers.
type BasicNack struct {
	DeliveryTag uint64
	Multiple    bool
	Requeue     bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *BasicNack) Decode(args []byte) error {
	if len(args) < 9 {
		return ErrTruncated
	}
	m.DeliveryTag = binary.BigEndian.Uint64(args[0:])
	m.Multiple = args[8]&1 != 0
	m.Requeue = args[8]&2 != 0
	args = args[9:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *BasicNack) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 60, 0, 120)
	dst = binary.BigEndian.AppendUint64(dst, m.DeliveryTag)
	{
		var bits byte
		if m.Multiple {
			bits |= 1
		}
		if m.Requeue {
			bits |= 2
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodBasicNack.
func (m *BasicNack) ID() MethodID { return MethodBasicNack }

// ConfirmSelect is confirm.select (85.10), sent by clients.
type ConfirmSelect struct {
	NoWait bool
}

// Decode reads the arguments. Strings and tables are views into args; after an
// error the fields have no meaning.
func (m *ConfirmSelect) Decode(args []byte) error {
	if len(args) < 1 {
		return ErrTruncated
	}
	m.NoWait = args[0]&1 != 0
	args = args[1:]
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConfirmSelect) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 85, 0, 10)
	{
		var bits byte
		if m.NoWait {
			bits |= 1
		}
		dst = append(dst, bits)
	}
	return finishFrame(dst, start)
}

// ID returns MethodConfirmSelect.
func (m *ConfirmSelect) ID() MethodID { return MethodConfirmSelect }

// ConfirmSelectOk is confirm.select-ok (85.11), sent by servers.
type ConfirmSelectOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *ConfirmSelectOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *ConfirmSelectOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 85, 0, 11)
	return finishFrame(dst, start)
}

// ID returns MethodConfirmSelectOk.
func (m *ConfirmSelectOk) ID() MethodID { return MethodConfirmSelectOk }

// TxSelect is tx.select (90.10), sent by clients.
type TxSelect struct {
}

// Decode refuses any argument octet: the method has none.
func (m *TxSelect) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *TxSelect) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 90, 0, 10)
	return finishFrame(dst, start)
}

// ID returns MethodTxSelect.
func (m *TxSelect) ID() MethodID { return MethodTxSelect }

// TxSelectOk is tx.select-ok (90.11), sent by servers.
type TxSelectOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *TxSelectOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *TxSelectOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 90, 0, 11)
	return finishFrame(dst, start)
}

// ID returns MethodTxSelectOk.
func (m *TxSelectOk) ID() MethodID { return MethodTxSelectOk }

// TxCommit is tx.commit (90.20), sent by clients.
type TxCommit struct {
}

// Decode refuses any argument octet: the method has none.
func (m *TxCommit) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *TxCommit) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 90, 0, 20)
	return finishFrame(dst, start)
}

// ID returns MethodTxCommit.
func (m *TxCommit) ID() MethodID { return MethodTxCommit }

// TxCommitOk is tx.commit-ok (90.21), sent by servers.
type TxCommitOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *TxCommitOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *TxCommitOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 90, 0, 21)
	return finishFrame(dst, start)
}

// ID returns MethodTxCommitOk.
func (m *TxCommitOk) ID() MethodID { return MethodTxCommitOk }

// TxRollback is tx.rollback (90.30), sent by clients.
type TxRollback struct {
}

// Decode refuses any argument octet: the method has none.
func (m *TxRollback) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *TxRollback) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 90, 0, 30)
	return finishFrame(dst, start)
}

// ID returns MethodTxRollback.
func (m *TxRollback) ID() MethodID { return MethodTxRollback }

// TxRollbackOk is tx.rollback-ok (90.31), sent by servers.
type TxRollbackOk struct {
}

// Decode refuses any argument octet: the method has none.
func (m *TxRollbackOk) Decode(args []byte) error {
	if len(args) != 0 {
		return ErrTrailing
	}
	return nil
}

// Append appends the whole method frame for channel to dst and returns it.
func (m *TxRollbackOk) Append(dst []byte, channel uint16) []byte {
	start := len(dst)
	dst = append(dst, FrameMethod, byte(channel>>8), byte(channel), 0, 0, 0, 0, 0, 90, 0, 31)
	return finishFrame(dst, start)
}

// ID returns MethodTxRollbackOk.
func (m *TxRollbackOk) ID() MethodID { return MethodTxRollbackOk }
