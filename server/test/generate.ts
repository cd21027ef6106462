/** Writes the generated files that are committed: `npm run generate`. generated.test.ts checks that they are current. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../src/database/db.ts'
import { migrate } from '../src/database/migrate.ts'
import { startCluster } from '../src/dev/postgres.ts'
import { dumpSchema, generateOpenApi, openApiFile, schemaFile } from './support/generated.ts'
import { generateTexts, root } from './support/generated-text.ts'
import { generateRights, rightsFile } from './support/rights-table.ts'

const folder = await mkdtemp(join(tmpdir(), 'farthing-generate-'))
const cluster = await startCluster(folder)
try {
  const url = cluster.url('postgres')
  const db = openDatabase({ url, connections: 4, name: 'generate' })
  await migrate(db)
  await writeFile(rightsFile, await generateRights(db))
  await db.close()
  await writeFile(schemaFile, await dumpSchema(url))
  await writeFile(openApiFile, generateOpenApi())
  for (const { file, text } of generateTexts()) await writeFile(root + file, text)
  // The examples are answers that a test gets. They are part of the document, which decides what the test expects.
  const play = ['server/test/run.ts', 'server/test/http/reference/examples.test.ts', '--test-reporter=dot']
  execFileSync(process.execPath, play, {
    cwd: root,
    env: { ...process.env, GENERATE: 'examples' },
    stdio: 'inherit',
  })
  await writeFile(openApiFile, generateOpenApi())
} finally {
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
}
