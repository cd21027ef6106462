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
    .map((file) => {
      const source = readFileSync(root + file, 'utf8')
      return { file, source, blocks: blocksOf(source) }
    })
}

function blocksOf(source: string): Block[] {
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
  return blocks
}
