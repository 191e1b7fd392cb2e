package engine

// What an exchange held back leaves in the order of the delays, which is not that of
// the log: a read of many records would bring one body that is wanted. So each gets a
// small read of its own, many of them at the same time.
const (
	// scatteredMax is how many, scatteredBytes how much each reads at first, and
	// scatteredBytesMax bounds the bodies that they bring.
	scatteredMax      = 128
	scatteredBytes    = 4 << 10
	scatteredBytesMax = 8 << 20
)

// scatteredReads are the reads under way. While there is one no death leaves the
// list, so that each knows its own by its place there.
type scatteredReads struct {
	reads [scatteredMax]bodyFetch
	errs  [scatteredMax]error
	left  int // under way
}

// scattered reports that the first of the dead was held and that what follows it does
// not stand near it in the log. There is one.
func (s *Shard) scattered() bool {
	first := &s.deaths[0]
	if !holds(first.q) {
		return false
	}
	for i := 1; i < len(s.deaths) && i < scatteredMax; i++ {
		if d := &s.deaths[i]; d.Msg == nil {
			return d.Pos < first.Pos || d.Pos-first.Pos >= loadBytes/scatteredMax
		}
	}
	return true
}

// mournScattered reads the bodies of the first of the dead that were held.
func (st *store) mournScattered() {
	a := st.alone
	if a == nil {
		a = &scatteredReads{}
		st.alone = a
	}
	deaths, bytes := st.shard.deaths, 0
	n := 0
	for n < len(deaths) && n < scatteredMax && bytes < scatteredBytesMax {
		bytes += int(deaths[n].Size)
		n++
	}
	a.left = 1 // ours, until all have begun
	for i := range n {
		d := &deaths[i]
		if d.Msg != nil || !holds(d.q) {
			continue
		}
		a.left++
		f := &a.reads[i]
		f.st, f.pos, f.short = st, walPosition(d.Pos), false
		if f.done == nil {
			f.done = func(c walChunk, err error) { f.mournedAlone(i, c, err) }
		}
		if len(f.buf) != scatteredBytes {
			f.buf = make([]byte, scatteredBytes)
		}
		st.mourns = f
		st.wal.Fetch(f.pos, f.buf, f.done)
	}
	a.left--
}

// mournedAlone takes what was read for the death in place i.
func (f *bodyFetch) mournedAlone(i int, c walChunk, err error) {
	st, a := f.st, f.st.alone
	switch {
	case needsRoom(err):
		f.grow(&c)
		return
	case isEnded(err):
		return // the process ends
	case err == nil:
		d := &st.shard.deaths[i]
		var r walRecord
		if c.Next(&r) && r.Position == f.pos {
			if d.Msg = f.message(&r); d.Msg != nil {
				st.paged.in++
			}
		}
		if d.Msg == nil && !f.short {
			err = errNotThere
		}
	}
	a.errs[i] = err
	if a.left--; a.left > 0 {
		return
	}
	st.mourns = nil
	for i := scatteredMax - 1; i >= 0; i-- {
		if err := a.errs[i]; err != nil {
			a.errs[i] = nil
			st.lostDeath(i, err)
		}
	}
}
