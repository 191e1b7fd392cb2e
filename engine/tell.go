package engine

// Tell runs fn on another shard, behind everything that this one sent there
// before. When the shard is this one it runs at once. It is On for those who wait
// for no answer.
func (s *Shard) Tell(shard int, fn func(at *Shard)) {
	if shard == s.Index {
		fn(s)
		return
	}
	s.send(shard, &Command{op: opCall, fn: fn})
}
