package defs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"ringmq/engine"
)

const (
	// format is the version of the file's layout. A newer one is not opened.
	format    = 1
	formatKey = "format"

	lockTimeout = time.Second
	fileMode    = 0o600
)

// buckets are the names of the buckets by kind, in the order of Load.
var buckets = [...]string{
	engine.KindVHost:     "vhosts",
	engine.KindExchange:  "exchanges",
	engine.KindQueue:     "queues",
	engine.KindBinding:   "bindings",
	engine.KindMeta:      "meta",
	engine.KindPolicy:    "policies",
	engine.KindLimits:    "limits",
	engine.KindParameter: "parameters",
}

// bucketsAlways is how many of them every file has. The later ones are made when
// something is put into them: files of older versions lack them.
const bucketsAlways = int(engine.KindMeta) + 1

// file is the bbolt file below a Store.
type file struct{ db *bbolt.DB }

// Open opens the definitions file at path, and makes it when it is missing. Its
// folder must exist. The errors say what is wrong with the file and are for the
// operator.
func Open(path string, o Options) (*Store, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := create(path, o); err != nil {
			return nil, err
		}
	}
	if err := checkSize(path); err != nil {
		return nil, err
	}
	f, err := openFile(path, o)
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, file: f, commit: f.commit, pending: batch{}, kick: make(chan struct{}, 1), stopped: make(chan struct{})}
	go s.run()
	return s, nil
}

// What bbolt's two first pages say of the file, by their offsets in the page: who
// wrote it, the size of a page, how many pages are in use, and how new that is.
const (
	metaMagicAt, metaMagic = 16, 0xed0cdaed
	metaPageSizeAt         = 24
	metaPagesAt            = 56
	metaChangeAt           = 64
	metaBytes              = 80
	pageSizeMax            = 64 << 10
)

// checkSize refuses a file that is shorter than it says: reading what is not there
// through a mapping ends the process without a word.
func checkSize(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the definitions file cannot be opened: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("the definitions file cannot be opened: %w", err)
	}
	if info.Size() == 0 {
		return fmt.Errorf("the definitions file %s is damaged: it is empty", path)
	}
	var newest, want uint64
	for at, n := int64(0), 0; n < 2; n++ {
		var b [metaBytes]byte
		if _, err := f.ReadAt(b[:], at); err != nil || binary.LittleEndian.Uint32(b[metaMagicAt:]) != metaMagic {
			break // whatever it is, opening it will say so
		}
		page := binary.LittleEndian.Uint32(b[metaPageSizeAt:])
		pages := binary.LittleEndian.Uint64(b[metaPagesAt:])
		if change := binary.LittleEndian.Uint64(b[metaChangeAt:]); page <= pageSizeMax && change >= newest {
			newest, want = change, pages*uint64(page)
		}
		at += int64(page)
	}
	if uint64(info.Size()) < want {
		return fmt.Errorf("the definitions file %s is damaged: it has %d of %d bytes", path, info.Size(), want)
	}
	return nil
}

// create makes a new file beside its place and moves it there when it is whole:
// a crash on the way must not leave half a file, which the next start would take
// for a damaged one.
func create(path string, o Options) error {
	unfinished := path + ".new"
	err := os.Remove(unfinished)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		var f file
		if f, err = openFile(unfinished, o); err == nil {
			err = f.close()
		}
	}
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err == nil && !o.NoSync {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("the definitions file %s cannot be made: %w", path, err)
	}
	return nil
}

// openFile opens a file and checks that it is of a known form.
func openFile(path string, o Options) (file, error) {
	var db *bbolt.DB
	err := guard(path, func() (err error) {
		if db, err = openDB(path, o); err != nil {
			return err
		}
		if err = prepare(db); err != nil {
			db.Close()
			return fmt.Errorf("the definitions file %s cannot be used: %w", path, err)
		}
		return nil
	})
	return file{db}, err
}

// guard makes an error of a panic: bbolt ends in one over most kinds of damage.
func guard(path string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the definitions file %s is damaged: %v", path, p)
		}
	}()
	return f()
}

// openDB opens the file itself.
func openDB(path string, o Options) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, fileMode, &bbolt.Options{
		Timeout: lockTimeout, NoSync: o.NoSync,
		// Thousands of free pages after a mass deletion are found by size.
		FreelistType: bbolt.FreelistMapType,
	})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("the definitions file %s is in use by another process; stop it or choose another data folder", path)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("the definitions file %s is damaged or not a definitions file: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("the definitions file cannot be opened: %w", err)
	}
	return db, nil
}

// prepare checks the version of the layout, and makes what a new file needs. A
// file that is complete is not written to: a start must not need room.
func prepare(db *bbolt.DB) error {
	fresh := false
	err := db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(buckets[engine.KindMeta]))
		if meta == nil {
			fresh = true
			return nil
		}
		for _, name := range buckets[:bucketsAlways] {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("it has no bucket %s", name)
			}
		}
		text := meta.Get([]byte(formatKey))
		n, err := strconv.Atoi(string(text))
		if err != nil || n < 1 {
			return fmt.Errorf("its format is %q, which is none", text)
		}
		if n > format {
			return fmt.Errorf("its format is %d, and this version knows formats up to %d: it was written by a newer version; use that one", n, format)
		}
		return nil
	})
	if err != nil || !fresh {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		meta := tx.Bucket([]byte(buckets[engine.KindMeta]))
		return meta.Put([]byte(formatKey), strconv.AppendInt(nil, format, 10))
	})
}

// commit writes a batch in one transaction; when it returns nil the batch is
// durable.
func (f file) commit(b batch) error {
	return guard(f.db.Path(), func() error {
		return f.db.Update(func(tx *bbolt.Tx) error { return putBatch(tx, b) })
	})
}

func putBatch(tx *bbolt.Tx, b batch) error {
	for id, c := range b {
		bucket, err := tx.CreateBucketIfNotExists([]byte(buckets[id.kind]))
		switch {
		case err != nil:
		case c.Delete:
			err = bucket.Delete(c.Key)
		default:
			err = bucket.Put(c.Key, seal(c.Key, c.Value))
		}
		if err != nil {
			return fmt.Errorf("definition %s: %w", id.key, err)
		}
	}
	return nil
}

// dropVoid removes from a batch the deletions of records that the file does not
// have.
func (f file) dropVoid(b batch) {
	// A file that cannot be read keeps its deletions: they do no harm.
	_ = guard(f.db.Path(), func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			for id, c := range b {
				bucket := tx.Bucket([]byte(buckets[id.kind]))
				if c.Delete && (bucket == nil || bucket.Get(c.Key) == nil) {
					delete(b, id)
				}
			}
			return nil
		})
	})
}

// Load implements engine.Definitions. Damage is an error that names the record.
func (s *Store) Load(f func(kind engine.ChangeKind, key, value []byte) error) (err error) {
	reading := true // not in f, whose panics are its own
	defer func() {
		if reading {
			if p := recover(); p != nil {
				err = fmt.Errorf("the definitions file %s is damaged: %v", s.file.db.Path(), p)
			}
		}
	}()
	return s.file.db.View(func(tx *bbolt.Tx) error {
		for kind, name := range buckets {
			bucket := tx.Bucket([]byte(name))
			if bucket == nil {
				continue // a kind that the file's version did not know
			}
			err := bucket.ForEach(func(key, value []byte) error {
				if engine.ChangeKind(kind) == engine.KindMeta && string(key) == formatKey {
					return nil
				}
				record, ok := unseal(key, value)
				if !ok {
					return fmt.Errorf("the definitions file %s is damaged: the checksum of record %s in %s is wrong",
						s.file.db.Path(), key, name)
				}
				reading = false
				err := f(engine.ChangeKind(kind), key, record)
				reading = true
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealSize is the length of a checksum in hexadecimal digits and a space.
const sealSize = 2*crc32.Size + 1

// seal puts before a record the checksum (CRC32C) of its key and itself: bbolt
// has none for what it keeps.
func seal(key, record []byte) []byte {
	out := appendSum(make([]byte, 0, sealSize+len(record)), key, record)
	return append(out, record...)
}

func appendSum(dst, key, record []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, record)
	dst = hex.AppendEncode(dst, binary.BigEndian.AppendUint32(nil, sum))
	return append(dst, ' ')
}

// unseal returns the record and whether its checksum is right.
func unseal(key, value []byte) ([]byte, bool) {
	if len(value) < sealSize {
		return nil, false
	}
	record := value[sealSize:]
	return record, bytes.Equal(appendSum(nil, key, record), value[:sealSize])
}

func (f file) close() error { return f.db.Close() }

// syncFolder makes a new file's name durable.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closed := d.Close(); err == nil {
		err = closed
	}
	return err
}
