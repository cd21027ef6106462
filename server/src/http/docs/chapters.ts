import { existsSync, globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import type { Html } from '../page/html.ts'
import { type Heading, renderMarkdown } from './markdown.ts'

/** A page of the docs, whatever it was made from. */
export type DocsPage = {
  /** Its path on this server. */
  readonly url: string
  readonly title: string
  readonly about: string
  readonly headings: readonly Heading[]
  readonly body: Html
  /** The Markdown it was made from. */
  readonly source: string | null
}

export type Chapter = { readonly title: string; readonly pages: readonly DocsPage[] }

/** Pages that are made from the program itself stand in the order by their paths. */
const order: readonly (readonly [title: string, files: readonly string[]])[] = [
  [
    'Start',
    [
      'README.md',
      'docs/payment.md',
      'docs/first-shop.md',
      'docs/test-stores.md',
      'docs/first-real-payment.md',
    ],
  ],
  [
    'Build',
    [
      'docs/api/guide.md',
      '/docs/api',
      'docs/sdk.md',
      'docs/webhooks.md',
      'docs/x402.md',
      '/docs/errors',
      'docs/page.md',
      'docs/api/answers.md',
      'docs/x402-answers.md',
    ],
  ],
  ['Run', ['docs/deploying.md', 'docs/operating.md', 'docs/security-model.md', 'docs/scale.md']],
  [
    'Understand',
    [
      'docs/architecture.md',
      'docs/authority.md',
      'docs/proof.md',
      'docs/measurements.md',
      'docs/decisions/README.md',
    ],
  ],
]
const lastChapter = 'More'

const root = new URL('../../../../', import.meta.url).pathname

/** Pictures of the docs: their path on this server, and where they lie. */
export function listPictures(): ReadonlyMap<string, string> {
  return new Map(globSync('docs/**/*.{png,svg}', { cwd: root }).map((file) => [`/${file}`, root + file]))
}

/** What is in no chapter is listed last; single decisions are not, because their own list names them. */
export function arrangeChapters(made: readonly DocsPage[]): {
  readonly chapters: readonly Chapter[]
  readonly pages: readonly DocsPage[]
} {
  const files = [...openFiles(), ...made.map((page) => [page.url, page] as const)]
  const byName = new Map<string, DocsPage>(files)
  const chapters = order.map(([title, names]) => ({
    title,
    pages: names.flatMap((name) => byName.get(name) ?? []),
  }))
  const placed = new Set(chapters.flatMap(({ pages }) => pages))
  const rest = files
    .filter(([name, page]) => !placed.has(page) && /^(docs\/)?[\w-]+\.md$/.test(name))
    .map(([, page]) => page)
  return { chapters: [...chapters, { title: lastChapter, pages: rest }], pages: [...byName.values()] }
}

/** By name: whatever else an operator keeps in that folder is nobody's to read. */
const besideDocs = '{README,CHANGELOG,CONTRIBUTING,SECURITY}.md'

let files: readonly (readonly [name: string, page: DocsPage])[] | null = null

/** Read and rendered once a process. */
function openFiles(): readonly (readonly [name: string, page: DocsPage])[] {
  files ??= globSync([besideDocs, 'docs/**/*.md'], { cwd: root })
    .sort()
    .map((file) => {
      const source = readFileSync(root + file, 'utf8')
      return [
        file,
        { ...renderMarkdown(source, (href) => resolveLink(file, href)), url: urlOf(file), source },
      ]
    })
  return files
}

/**
 * docs/webhooks.md is /docs/webhooks. A folder's README is the folder, unless a page has that address: docs/proof.md is
 * /docs/proof, and docs/proof/README.md is /docs/proof/README. Files outside docs/ are served below /docs as well.
 */
function urlOf(file: string): string {
  const path = (file.startsWith('docs/') ? file : `docs/${file.toLowerCase()}`).replace(/\.md$/, '')
  const folder = path.replace(/\/readme$/i, '')
  return `/${existsSync(`${root}${folder}.md`) ? path : folder}`
}

/** Where a link in a file leads on this server. What is not served here, such as a source file, is only named. */
function resolveLink(from: string, href: string): string | null {
  if (/^(https?:|#|\/)/.test(href)) return href
  const [path = '', fragment] = href.split('#')
  const target = posix.join(posix.dirname(from), path)
  const hash = fragment === undefined ? '' : `#${fragment}`
  if (target === 'docs/api/openapi.json') return '/openapi.json'
  if (/^docs\/.*\.(png|svg)$/.test(target)) return `/${target}`
  return /^([\w-]+|docs\/.*)\.md$/.test(target) ? urlOf(target) + hash : null
}
