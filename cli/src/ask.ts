import { createInterface } from 'node:readline/promises'

/** Whether the person at the terminal says yes. */
export async function ask(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  const isLeft = new Promise<string>((resolve) => {
    lines.once('SIGINT', () => resolve(''))
    lines.once('close', () => resolve(''))
  })
  try {
    return /^y(es)?$/i.test((await Promise.race([lines.question(`${question} [y/N] `), isLeft])).trim())
  } finally {
    lines.close()
  }
}
