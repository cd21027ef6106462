/**
 * Remembers what `read` answers, per key, for some time. Callers who ask at the same moment share one read, and a read
 * that fails is not remembered. Beyond `entriesMax` the oldest entry goes, which bounds the memory.
 */
export function remember<Key, Value>(
  read: (key: Key) => Promise<Value>,
  options: { readonly forMs: number; readonly entriesMax: number; readonly now: () => Date },
): { readonly get: (key: Key) => Promise<Value>; readonly forget: (key: Key) => void } {
  const entries = new Map<Key, { readonly answer: Promise<Value>; readonly until: number }>()
  return {
    get(key) {
      const now = options.now().getTime()
      const known = entries.get(key)
      if (known && known.until > now) return known.answer
      const answer = read(key)
      const entry = { answer, until: now + options.forMs }
      // Deleted first, so that the newest entry is the last to go.
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
