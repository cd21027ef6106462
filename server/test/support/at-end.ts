import { after } from 'node:test'

const steps: (() => unknown)[] = []

// Here, not in the function: a hook that is registered inside a test belongs to that test, not to the file.
after(async () => {
  const failures: unknown[] = []
  for (const step of steps.toReversed()) {
    // One that fails must not keep the others from ending: a child that lives on would keep this process alive.
    try {
      await step()
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed')
})

/** Runs when the file's tests are done, the last registered first: what was opened last is closed first. */
export function atEnd(step: () => unknown): void {
  steps.push(step)
}
