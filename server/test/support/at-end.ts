import { after } from 'node:test'

const steps: (() => unknown)[] = []
/** What is closed lets go of the process at once; longer than this, it never will, and the whole run would wait for it. */
const lingerMaxMs = 120_000

// At module level, because a hook registered inside a test belongs to that test, not to the file.
after(async () => {
  const failures: unknown[] = []
  for (const step of steps.toReversed()) {
    // One failure must not keep the others from closing: a child that lives on would keep this process alive.
    try {
      await step()
    } catch (error) {
      failures.push(error)
    }
  }
  setTimeout(() => {
    process.stderr.write(`still open after all tests: ${process.getActiveResourcesInfo().join(', ')}\n`)
    process.exit(1)
  }, lingerMaxMs).unref()
  if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed')
})

/** Registers a step that runs after the file's tests, in reverse order: the last thing opened is closed first. */
export function atEnd(step: () => unknown): void {
  steps.push(step)
}
