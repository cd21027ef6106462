import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { freshDatabase } from './support/database.ts'
import { dumpSchema, generateOpenApi, openApiFile, schemaFile } from './support/generated.ts'
import { generateTexts, root } from './support/generated-text.ts'
import { generateRights, rightsFile } from './support/rights-table.ts'

const hint = 'Run npm run generate and commit the result.'

test('server/test/schema.sql is the schema that the migrations produce', async () => {
  const { url } = await freshDatabase()
  assert.equal(await dumpSchema(url), await readFile(schemaFile, 'utf8'), hint)
})

test('docs/rights.md says what each database role may do', async () => {
  const { db } = await freshDatabase()
  assert.equal(await generateRights(db), await readFile(rightsFile, 'utf8'), hint)
})

test('docs/api/openapi.json describes the mounted routes', async () => {
  assert.equal(generateOpenApi(), await readFile(openApiFile, 'utf8'), hint)
})

for (const { file, text } of generateTexts())
  test(`${file} matches the code it is generated from`, async () => {
    assert.equal(text, await readFile(root + file, 'utf8'), hint)
  })
