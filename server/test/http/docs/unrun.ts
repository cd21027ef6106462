/**
 * How many blocks of each page do not run beside `npm run dev`: those marked `elsewhere` that `deploying:test`
 * does not run either, and listings that no block uses. The numbers only fall: a block that can run has to, and a page that is not listed has none.
 */
export const unrun: Readonly<Record<string, number>> = {
  'CONTRIBUTING.md': 1,
  'docs/architecture.md': 1,
  'docs/cells.md': 25,
  'docs/containers.md': 4,
  'docs/decisions/README.md': 1,
  'docs/deploying.md': 3,
  'docs/hosting.md': 1,
  'docs/operating.md': 3,
  'docs/postgresql.md': 3,
  'docs/proof.md': 1,
  'docs/reference.md': 3,
  'docs/runbook.md': 1,
  'docs/server-keys.md': 4,
}
