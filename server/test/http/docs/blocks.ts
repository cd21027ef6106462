import { globSync, readFileSync } from 'node:fs'
import { Marked, type Tokens } from 'marked'
import { fileNameOf } from '../../../src/http/docs/markdown.ts'

export const root = new URL('../../../../', import.meta.url).pathname

/** A fenced block of the docs. CONTRIBUTING.md says what its info string means. */
export type Block = {
  readonly language: string
  /** The file to save the block as. */
  readonly fileName: string | null
  /** The statuses, other than success, that the requests in the block must get. */
  readonly statuses: readonly string[]
  /** The block needs something that a test does not have: a domain, a service manager, real money. */
  readonly isElsewhere: boolean
  /** Everything after the language. */
  readonly words: readonly string[]
  readonly text: string
}

export type Page = { readonly file: string; readonly source: string; readonly blocks: readonly Block[] }

export function readPages(): Page[] {
  return globSync(['*.md', 'docs/**/*.md'], { cwd: root })
    .sort()
    .map((file) => parsePage(file, readFileSync(root + file, 'utf8')))
}

export function parsePage(file: string, source: string): Page {
  const marked = new Marked()
  const blocks: Block[] = []
  void marked.walkTokens(marked.lexer(source), (token) => {
    if (token.type !== 'code') return
    const { lang = '', text } = token as Tokens.Code
    const [language = '', ...words] = lang.split(' ')
    blocks.push({
      language,
      fileName: fileNameOf(words.join(' ')),
      statuses: words.filter((word) => /^\d{3}$/.test(word)),
      isElsewhere: words.includes('elsewhere'),
      words,
      text,
    })
  })
  return { file, source, blocks }
}

/** Pages that `run.test.ts` does not follow: `npm run quickstart:test` follows the README, and developers the other. */
const others = ['README.md', 'CONTRIBUTING.md']

export function isFollowed({ file }: Page): boolean {
  return !others.includes(file)
}

/** Whether it runs on a page that is followed. */
export function isRun({ language, isElsewhere, fileName }: Block): boolean {
  return !isElsewhere && (language === 'sh' || (language === 'ts' && fileName === null))
}

/** What a block that runs must print: JSON of this shape, or exactly this text. */
export function isOutput({ language, isElsewhere, fileName }: Block): boolean {
  return !isElsewhere && fileName === null && (language === 'json' || language === 'text')
}

/** What `npm run deploying:test -- --here` runs with every commit. */
const deployed = ['install', 'setup', 'machine', 'restore']

/** The blocks that are neither run, nor saved for one that runs, nor compared with what one has printed. */
export function listUnrun(page: Page): Block[] {
  const { file, source, blocks } = page
  if (file === 'README.md') {
    const [quickStart = ''] = /^## Quick start\n[\s\S]*?^## /m.exec(source) ?? []
    return blocks.filter((block) => !isRun(block) || !quickStart.includes(block.text))
  }
  if (!isFollowed(page)) return [...blocks]
  return blocks.filter((block, i) => {
    const before = blocks[i - 1]
    const isCompared = isOutput(block) && before !== undefined && isRun(before)
    const { fileName } = block
    const isUsed =
      !block.isElsewhere &&
      fileName !== null &&
      blocks.slice(i + 1).some((later) => isRun(later) && later.text.includes(fileName))
    const isDeployed = block.words.some((word) => deployed.includes(word))
    return !isRun(block) && !isCompared && !isUsed && !isDeployed
  })
}
