package crashfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"

	"ringmq/wal"
)

// SectorSize is what is written as a whole or not at all.
const SectorSize = 512

// ErrCrashed is what every call returns after the power is gone.
var ErrCrashed = errors.New("crashfs: the power is off")

// ErrShort in a script makes a write take half of its bytes and report no error.
// Other calls fail with it.
var ErrShort = errors.New("crashfs: short write")

// FS is one folder on the disk.
type FS struct {
	mu       sync.Mutex
	files    map[string]*inode // as the kernel shows them
	durable  map[string]*inode // as the disk has them
	renames  []nameChange      // what lies between, in order
	capacity int64             // bytes, 0 for no limit

	calls   int // since the beginning
	fail    map[int]error
	crashAt int // the number of the call at which the power goes, 0 for never
	crashed bool
	failed  []string // names of the calls that the script made fail

	syncs   int
	lies    map[int]bool // syncs by number that do nothing
	lieAll  bool
	callLog map[string]int
}

// nameChange is a change of the folder that is not durable yet. from or to may be
// empty.
type nameChange struct {
	from, to string
	node     *inode
}

// inode is the content of one file.
type inode struct {
	data    []byte // as the kernel shows it
	durable []byte // as the disk has it; the same bytes as data, if nothing was written since
	pending []write
}

// newInode is a file whose content is durable.
func newInode(content []byte) *inode { return &inode{data: content, durable: content} }

// change makes data other bytes than durable.
func (n *inode) change() {
	if len(n.data) > 0 && &n.data[0] == &n.durable[0] {
		n.data = slices.Clone(n.data)
	}
}

// write is a write that is not durable yet.
type write struct {
	off  int64
	data []byte
}

// New returns an empty disk.
func New() *FS {
	return &FS{files: map[string]*inode{}, durable: map[string]*inode{}, fail: map[int]error{}, lies: map[int]bool{}, callLog: map[string]int{}}
}

// SetCapacity limits the bytes of all files; 0 lifts the limit.
func (fs *FS) SetCapacity(bytes int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.capacity = bytes
}

// Fail makes the nth call from now on return err, once. The first is 1.
func (fs *FS) Fail(n int, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.fail[fs.calls+n] = err
}

// CrashAt takes the power away at the nth call from now on: a write may have reached
// the disk in part by then, and every later call returns ErrCrashed.
func (fs *FS) CrashAt(n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.crashAt = fs.calls + n
}

// LieAboutSync makes the nth sync of a file from now on do nothing.
func (fs *FS) LieAboutSync(n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.lies[fs.syncs+n] = true
}

// LieAboutSyncs makes all syncs of files do nothing.
func (fs *FS) LieAboutSyncs() { fs.lieAll = true }

// Calls is the number of calls so far.
func (fs *FS) Calls() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.calls
}

// Crashed reports whether the power is off.
func (fs *FS) Crashed() bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.crashed
}

// Failed lists the calls that the script made fail.
func (fs *FS) Failed() []string {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return slices.Clone(fs.failed)
}

// CallCounts is how often each kind of call was made.
func (fs *FS) CallCounts() map[string]int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	counts := map[string]int{}
	for name, n := range fs.callLog {
		counts[name] = n
	}
	return counts
}

// call counts one call and returns what the script wants of it.
func (fs *FS) call(name string) error {
	fs.calls++
	fs.callLog[name]++
	if fs.crashAt != 0 && fs.calls >= fs.crashAt {
		fs.crashed = true
	}
	if fs.crashed {
		return ErrCrashed
	}
	if err := fs.fail[fs.calls]; err != nil {
		delete(fs.fail, fs.calls)
		fs.failed = append(fs.failed, name)
		return err
	}
	return nil
}

// List implements wal.Disk.
func (fs *FS) List() ([]wal.FileInfo, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.call("list"); err != nil {
		return nil, err
	}
	var infos []wal.FileInfo
	for _, name := range fs.names() {
		infos = append(infos, wal.FileInfo{Name: name, Size: int64(len(fs.files[name].data))})
	}
	return infos, nil
}

func (fs *FS) names() []string {
	var names []string
	for name := range fs.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Create implements wal.Disk.
func (fs *FS) Create(name string, size int64) (wal.File, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.call("create"); err != nil {
		return nil, err
	}
	if fs.files[name] != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: os.ErrExist}
	}
	used := size
	for _, node := range fs.files {
		used += int64(len(node.data))
	}
	if fs.capacity > 0 && used > fs.capacity {
		return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	node := newInode(make([]byte, size))
	fs.files[name] = node
	fs.renames = append(fs.renames, nameChange{"", name, node})
	return &file{fs: fs, node: node, size: size}, nil
}

// Open implements wal.Disk.
func (fs *FS) Open(name string) (wal.File, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.call("open"); err != nil {
		return nil, err
	}
	node := fs.files[name]
	if node == nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	return &file{fs: fs, node: node, size: int64(len(node.data))}, nil
}

// Rename implements wal.Disk.
func (fs *FS) Rename(from, to string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.call("rename"); err != nil {
		return err
	}
	node := fs.files[from]
	if node == nil {
		return &os.PathError{Op: "rename", Path: from, Err: os.ErrNotExist}
	}
	delete(fs.files, from)
	fs.files[to] = node
	fs.renames = append(fs.renames, nameChange{from, to, node})
	return nil
}

// Remove implements wal.Disk.
func (fs *FS) Remove(name string) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.call("remove"); err != nil {
		return err
	}
	node := fs.files[name]
	if node == nil {
		return &os.PathError{Op: "remove", Path: name, Err: os.ErrNotExist}
	}
	delete(fs.files, name)
	fs.renames = append(fs.renames, nameChange{name, "", node})
	return nil
}

// SyncDir implements wal.Disk.
func (fs *FS) SyncDir() error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if err := fs.call("sync folder"); err != nil {
		return err
	}
	fs.durable = map[string]*inode{}
	for name, node := range fs.files {
		fs.durable[name] = node
	}
	fs.renames = nil
	return nil
}

// Crash returns the disk as it is found after the power came back. The old one is
// dead.
func (fs *FS) Crash(rng *rand.Rand) *FS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.crashed = true
	after := New()
	after.capacity = fs.capacity
	names := map[string]*inode{}
	for name, node := range fs.durable {
		names[name] = node
	}
	// Changes of the folder: in order up to some point, or any of them.
	keep, any := rng.IntN(len(fs.renames)+1), rng.IntN(2) == 0
	for i, change := range fs.renames {
		if any && rng.IntN(2) == 0 || !any && i >= keep {
			continue
		}
		if change.from != "" {
			if names[change.from] != change.node {
				continue
			}
			delete(names, change.from)
		}
		if change.to != "" {
			names[change.to] = change.node
		}
	}
	order := make([]string, 0, len(names))
	for name := range names {
		order = append(order, name)
	}
	slices.Sort(order)
	for _, name := range order {
		content := names[name].crash(rng)
		node := newInode(content)
		after.files[name], after.durable[name] = node, node
	}
	return after
}

// crash returns what the disk holds of a file.
func (n *inode) crash(rng *rand.Rand) []byte {
	content := slices.Clone(n.durable)
	style := rng.IntN(4)
	if style == 0 {
		return content // nothing arrived
	}
	touched := map[int64]int{} // how many of the writes to a sector arrived
	for _, w := range n.pending {
		for at := w.off / SectorSize; at*SectorSize < w.off+int64(len(w.data)); at++ {
			touched[at]++
		}
	}
	var sectors []int64
	for at := range touched {
		sectors = append(sectors, at)
	}
	slices.Sort(sectors)
	for _, at := range sectors {
		switch {
		case style == 1: // everything arrived
		case style == 2 && rng.IntN(8) != 0: // nearly everything
		default:
			touched[at] = rng.IntN(touched[at] + 1)
		}
	}
	for _, w := range n.pending {
		for at := w.off / SectorSize; at*SectorSize < w.off+int64(len(w.data)); at++ {
			if touched[at] == 0 {
				continue
			}
			touched[at]--
			from := max(at*SectorSize, w.off)
			to := min((at+1)*SectorSize, w.off+int64(len(w.data)))
			copy(content[from:to], w.data[from-w.off:])
		}
	}
	return content
}

// holds reports whether a write of p would change nothing, now or after a crash.
func (n *inode) holds(off int64, p []byte) bool {
	for _, w := range n.pending {
		if w.off < off+int64(len(p)) && off < w.off+int64(len(w.data)) {
			return false
		}
	}
	end := off + int64(len(p))
	return bytes.Equal(n.durable[off:end], p) && bytes.Equal(n.data[off:end], p)
}

// Kill returns the disk as a process finds it that starts after another one died: the
// kernel has everything that was written, the disk may not.
func (fs *FS) Kill() *FS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.crashed = true
	after := New()
	after.files, after.durable, after.renames, after.capacity = fs.files, fs.durable, fs.renames, fs.capacity
	return after
}

// Clone returns a copy with everything durable.
func (fs *FS) Clone() *FS {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	after := New()
	after.capacity = fs.capacity
	for name, node := range fs.files {
		copied := newInode(slices.Clone(node.data))
		after.files[name], after.durable[name] = copied, copied
	}
	return after
}

// Names lists the files.
func (fs *FS) Names() []string {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.names()
}

// Flip changes bits of one byte of a file, on the disk and in the kernel's cache.
func (fs *FS) Flip(name string, off int64, bits byte) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	node := fs.files[name]
	node.change()
	node.data[off] ^= bits
	node.durable[off] ^= bits
}

// Bytes is the content of a file as the kernel shows it, not a copy.
func (fs *FS) Bytes(name string) []byte {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.files[name].data
}

// Truncate cuts a file, durably.
func (fs *FS) Truncate(name string, size int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	node := fs.files[name]
	content := slices.Clone(node.data[:size])
	fs.files[name] = newInode(content)
	fs.durable[name] = fs.files[name]
}

// Put makes a file with this content, durably.
func (fs *FS) Put(name string, content []byte) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	node := newInode(slices.Clone(content))
	fs.files[name], fs.durable[name] = node, node
}

// file is an open file.
type file struct {
	fs   *FS
	node *inode
	size int64
}

func (f *file) Size() int64  { return f.size }
func (f *file) Fd() int      { return -1 }
func (f *file) Close() error { return nil }

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.call("read"); err != nil {
		return 0, err
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	err := f.fs.call("write")
	if err != nil && f.fs.crashed && f.fs.calls > f.fs.crashAt {
		return 0, err
	}
	n := len(p)
	if err != nil {
		n /= 2
	}
	if off+int64(n) > int64(len(f.node.data)) {
		return 0, &os.PathError{Op: "write", Path: "file", Err: syscall.ENOSPC}
	}
	if !f.node.holds(off, p[:n]) {
		f.node.change()
		copy(f.node.data[off:], p[:n])
		f.node.pending = append(f.node.pending, write{off, slices.Clone(p[:n])})
	}
	if errors.Is(err, ErrShort) {
		err = nil
	}
	return n, err
}

// WriteSyncAt is a write with FUA: these bytes are on the disk afterwards, and of what
// was written before, other bytes are as unsafe as they were.
func (f *file) WriteSyncAt(p []byte, off int64) (int, error) {
	n, err := f.WriteAt(p, off)
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.syncs++
	if err != nil || f.fs.lieAll || f.fs.lies[f.fs.syncs] {
		return n, err
	}
	copy(f.node.durable[off:], p[:n])
	end := off + int64(n)
	var left []write
	for _, w := range f.node.pending {
		if before := off - w.off; before > 0 {
			left = append(left, write{w.off, w.data[:min(before, int64(len(w.data)))]})
		}
		if behind := w.off + int64(len(w.data)) - end; behind > 0 {
			left = append(left, write{max(w.off, end), w.data[max(0, end-w.off):]})
		}
	}
	f.node.pending = left
	return n, nil
}

func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	err := f.fs.call("sync")
	if errors.Is(err, ErrCrashed) {
		return err
	}
	f.fs.syncs++
	if f.fs.lieAll || f.fs.lies[f.fs.syncs] {
		return nil
	}
	if err == nil {
		for _, w := range f.node.pending {
			copy(f.node.durable[w.off:], w.data)
		}
	}
	// After an error the kernel counts the pages as written: the next sync has
	// nothing to do and says so.
	f.node.pending = nil
	return err
}

func (f *file) DropCache() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.fs.call("drop cache"); err != nil {
		return err
	}
	// Clean pages are read again from the disk; dirty ones stay.
	copy(f.node.data, f.node.durable)
	for _, w := range f.node.pending {
		copy(f.node.data[w.off:], w.data)
	}
	return nil
}
