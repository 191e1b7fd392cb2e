package ring

// Drive opens the loops on the calling goroutine instead of starting threads, for a simulator that
// decides itself which loop runs when. It calls App.Start on each; Port.Turn does the rest. Pinning,
// GOMAXPROCS and blocking are left out. Shutdown then only asks the loops to stop and returns.
func (g *Group) Drive() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	must(!g.started && !g.stopped, "Drive after Start or Shutdown")
	g.started, g.driven = true, true
	g.running.Store(int64(len(g.loops)))
	for _, l := range g.loops {
		if err := l.open(); err != nil {
			return err
		}
		l.app.Start(l)
	}
	return nil
}

// Turn runs one turn of a loop opened by Group.Drive. It reports false when the loop has stopped: then
// App.Stop was called and the backend is closed.
func (p *Port) Turn() bool {
	l := p.loop
	if l.stopped {
		return false
	}
	l.turn()
	if l.stopped {
		l.shut()
		l.group.exited(l)
		return false
	}
	return true
}
