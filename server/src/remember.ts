/**
 * Caches what `read` returns, per key, for `forMs`. Concurrent callers share one read, and a failed read is not cached.
 * Beyond `entriesMax` the oldest entry is dropped, which bounds memory.
 */
export function remember<Key, Value>(
  read: (key: Key) => Promise<Value>,
  options: { readonly forMs: number; readonly entriesMax: number; readonly now: () => Date },
): { readonly get: (key: Key) => Promise<Value>; readonly forget: (key: Key) => void } {
  const entries = new Map<Key, { readonly answer: Promise<Value>; readonly at: number }>()
  return {
    get(key) {
      const now = options.now().getTime()
      const known = entries.get(key)
      // A clock that is set back makes an answer older, not fresh for longer.
      if (known && Math.abs(now - known.at) < options.forMs) return known.answer
      const answer = read(key)
      const entry = { answer, at: now }
      // Deleted first, so that a renewed entry becomes the newest and is dropped last.
      entries.delete(key)
      entries.set(key, entry)
      if (entries.size > options.entriesMax) entries.delete(entries.keys().next().value as Key)
      answer.catch(() => {
        if (entries.get(key) === entry) entries.delete(key)
      })
      return answer
    },
    forget: (key) => void entries.delete(key),
  }
}
