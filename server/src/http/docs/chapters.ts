import { existsSync, globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import type { Html } from '../page/html.ts'
import { type Heading, renderMarkdown } from './markdown.ts'

/** A page of the docs, from a file or generated. */
export type DocsPage = {
  /** Its path on this server. */
  readonly url: string
  readonly title: string
  readonly about: string
  readonly headings: readonly Heading[]
  /** Renders its body on first request, because most pages are never requested. */
  readonly render: () => Html
  /** The Markdown it was rendered from; null if it is generated. */
  readonly source: string | null
}

export type Chapter = { readonly title: string; readonly pages: readonly DocsPage[] }

/** Pages by reader, the required reading first. Files are listed by their path, generated pages by their URL's path. */
const order: readonly (readonly [reader: string, files: readonly string[]])[] = [
  ['Everyone', ['README.md', 'docs/payment.md']],
  ['Owner', ['docs/owner.md', 'docs/page.md', 'docs/books.md']],
  [
    'Developer',
    [
      'docs/first-shop.md',
      'docs/build.md',
      'docs/sdk.md',
      'docs/links.md',
      '/docs/api',
      '/docs/errors',
      'docs/api/answers.md',
      'docs/test-stores.md',
    ],
  ],
  ['Agent', ['docs/x402.md']],
  [
    'Operator',
    [
      'docs/deploying.md',
      'docs/operating.md',
      'docs/runbook.md',
      'docs/reference.md',
      'docs/hosting.md',
      'docs/containers.md',
      'docs/postgresql.md',
      'docs/server-keys.md',
      'docs/cells.md',
      'docs/scale.md',
      'docs/roles.md',
      'docs/rights.md',
      'docs/retention.md',
      'docs/audit.md',
      'docs/batcher.md',
      'docs/security-model.md',
    ],
  ],
  [
    'Contributor',
    [
      'CONTRIBUTING.md',
      'docs/architecture.md',
      'docs/dependencies.md',
      'docs/proof.md',
      'docs/measurements.md',
      'docs/decisions/README.md',
    ],
  ],
]
const lastChapter = 'More'

const root = new URL('../../../../', import.meta.url).pathname

/** The files of the pictures in the docs, by URL path. */
export function listPictures(): ReadonlyMap<string, string> {
  return new Map(globSync('docs/**/*.{png,svg}', { cwd: root }).map((file) => [`/${file}`, root + file]))
}

/** Files of the root and of docs/ that no chapter lists go last. Deeper ones, such as decisions, have an index. */
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

/** By name, because nothing else in the root folder may be served. */
const besideDocs = '{README,CHANGELOG,CONTRIBUTING,SECURITY}.md'

let files: readonly (readonly [name: string, page: DocsPage])[] | null = null

/** Read once per process. */
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
 * docs/build.md is served at /docs/build, and a folder's README at the folder, unless a page has that URL:
 * docs/proof.md is /docs/proof, so docs/proof/README.md is /docs/proof/README. Files of the root are under /docs too.
 */
function urlOf(file: string): string {
  const path = (file.startsWith('docs/') ? file : `docs/${file.toLowerCase()}`).replace(/\.md$/, '')
  const folder = path.replace(/\/readme$/i, '')
  return `/${existsSync(`${root}${folder}.md`) ? path : folder}`
}

/** The URL that a link in a file leads to on this server. Null for files that aren't served, such as sources. */
function resolveLink(from: string, href: string): string | null {
  if (/^(https?:|#|\/)/.test(href)) return href
  const [path = '', fragment] = href.split('#')
  const target = posix.join(posix.dirname(from), path)
  const hash = fragment === undefined ? '' : `#${fragment}`
  if (target === 'docs/api/openapi.json') return '/openapi.json'
  if (/^docs\/.*\.(png|svg)$/.test(target)) return `/${target}`
  return /^([\w-]+|docs\/.*)\.md$/.test(target) ? urlOf(target) + hash : null
}
