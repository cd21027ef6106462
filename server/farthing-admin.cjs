#!/usr/bin/env node
'use strict'
require('./node-version.cjs')
void import('./src/main.ts')
