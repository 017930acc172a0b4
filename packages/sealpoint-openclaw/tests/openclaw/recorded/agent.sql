PRAGMA user_version=23;
CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "schema_meta" ("meta_key","role","schema_version","agent_id","app_version","created_at","updated_at") VALUES ('primary','agent',23,'main','2026.9.6',1795075699675,1795075699675);
CREATE TABLE session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY,
  current_session_id TEXT NOT NULL,
  entry_json TEXT NOT NULL,
  legacy_acp_migration_json TEXT,
  entry_valid INTEGER NOT NULL DEFAULT 0 CHECK (entry_valid IN (-1, 0, 1)),
  updated_at INTEGER NOT NULL,
  status TEXT CHECK (status IS NULL OR status IN ('running', 'done', 'failed', 'killed', 'timeout')),
  created_at INTEGER,
  created_via TEXT CHECK (created_via IS NULL OR created_via IN ('operator', 'spawn', 'channel', 'cron', 'talk', 'run', 'plugin', 'internal')),
  created_actor_type TEXT CHECK (created_actor_type IS NULL OR created_actor_type IN ('human', 'agent', 'system')),
  created_actor_id TEXT,
  owner_actor_type TEXT,
  owner_actor_id TEXT,
  owner_assigned_by_type TEXT,
  owner_assigned_by_id TEXT,
  owner_assigned_at INTEGER,
  project_id TEXT,
  parent_session_key TEXT,
  spawned_by TEXT,
  fork_source_session_key TEXT,
  fork_source_session_id TEXT,
  fork_source_entry_id TEXT,
  label TEXT,
  display_name TEXT,
  category TEXT,
  icon TEXT,
  pinned_at INTEGER,
  archived_at INTEGER,
  last_read_at INTEGER,
  last_interaction_at INTEGER,
  last_activity_at INTEGER
) STRICT;
INSERT INTO "session_nodes" ("session_key","current_session_id","entry_json","legacy_acp_migration_json","entry_valid","updated_at","status","created_at","created_via","created_actor_type","created_actor_id","owner_actor_type","owner_actor_id","owner_assigned_by_type","owner_assigned_by_id","owner_assigned_at","project_id","parent_session_key","spawned_by","fork_source_session_key","fork_source_session_id","fork_source_entry_id","label","display_name","category","icon","pinned_at","archived_at","last_read_at","last_interaction_at","last_activity_at") VALUES ('agent:main:main','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','{"createdVia":"operator","createdAt":1795075700497,"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","lifecycleRevision":"fba1df07-f1e6-41f8-8608-767c7f3954aa","updatedAt":1795077068784,"sessionStartedAt":1795075700495,"lastInteractionAt":1795077066929,"systemSent":true,"abortedLastRun":false,"chatType":"direct","delivery":{"kind":"internal"},"compactionCount":0,"totalTokens":100,"totalTokensFresh":true,"totalTokensVersion":1,"sessionDiffBaseline":{"version":1,"root":"/home/ann/.openclaw/workspace","files":[{"path":"AGENTS.md","fingerprint":"7b765078b01bbd293dce2f2c1f4e13a94bc8dc29edbf483115270271e14ec888"},{"path":"BOOTSTRAP.md","fingerprint":"e0b15fa27bed8e94e124600850c6b1482ad2068519039c04aa4b784f0d6b8468"},{"path":"IDENTITY.md","fingerprint":"426a5a9bbe2e938907173c6e9852fa347191b44069a84c6442e00ed374048641"},{"path":"SOUL.md","fingerprint":"20c97dad35f614525f588ed1caf8268bc0ba7b0cdb8fb89e57828ee95604575d"},{"path":"USER.md","fingerprint":"abff8de4347c0ed7635d2e45b4ed10152e9662065d8aa78277d33d5d079e74cc"}],"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb"},"skillsSnapshot":{"prompt":"a text of 6618 letters","skills":[{"name":"add-model-provider","skillKey":"add-model-provider"},{"name":"browser-automation","skillKey":"browser-automation"},{"name":"canvas","skillKey":"canvas"},{"name":"clawhub","skillKey":"clawhub"},{"name":"cloud-image-bake","skillKey":"cloud-image-bake"},{"name":"configure-channel","skillKey":"configure-channel"}],"nodeSkillsEligibility":{"canExec":true},"version":1795077037265,"promptFormatVersion":6},"activeWriterRunId":"0b31ac4c71614b4da1d57e71721d8ffc","status":"done","startedAt":1795077068409,"modelProvider":"stub","model":"stub-1","agentHarnessId":"openclaw","contextTokensSource":"resolved","contextBudgetStatus":{"schemaVersion":1,"source":"pre-prompt-estimate","updatedAt":1795077068302,"provider":"stub","model":"stub-1","route":"fits","shouldCompact":false,"estimatedPromptTokens":19922,"contextTokenBudget":128000,"promptBudgetBeforeReserve":108000,"reserveTokens":20000,"effectiveReserveTokens":20000,"remainingPromptBudgetTokens":88078,"overflowTokens":0,"toolResultReducibleChars":0,"messageCount":14,"unwindowedMessageCount":14,"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb"},"contextTokens":128000,"systemPromptReport":{"source":"run","generatedAt":1795077068031,"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","sessionKey":"agent:main:main","provider":"stub","model":"stub-1","workspaceDir":"/home/ann/.openclaw/workspace","bootstrapMaxChars":20000,"bootstrapTotalMaxChars":60000,"bootstrapTruncation":{"warningMode":"always","warningShown":false,"truncatedFiles":0,"nearLimitFiles":0,"totalNearLimit":false},"sandbox":{"mode":"off","sandboxed":false},"systemPrompt":{"chars":51890,"hash":"1a3fb884b9643114521348e36eb0f00f8da24a05e1b6598746eb295fc3f1af24","projectContextChars":26438,"nonProjectContextChars":25452},"injectedWorkspaceFiles":[{"name":"AGENTS.md","path":"/home/ann/.openclaw/workspace/AGENTS.md","missing":false,"rawChars":6305,"injectedChars":6305,"truncated":false},{"name":"SOUL.md","path":"/home/ann/.openclaw/workspace/SOUL.md","missing":false,"rawChars":1561,"injectedChars":1561,"truncated":false},{"name":"IDENTITY.md","path":"/home/ann/.openclaw/workspace/IDENTITY.md","missing":false,"rawChars":1398,"injectedChars":1398,"truncated":false},{"name":"USER.md","path":"/home/ann/.openclaw/workspace/USER.md","missing":false,"rawChars":1136,"injectedChars":1136,"truncated":false},{"name":"BOOTSTRAP.md","path":"/home/ann/.openclaw/workspace/BOOTSTRAP.md","missing":false,"rawChars":7822,"injectedChars":7822,"truncated":false}],"skills":{"promptChars":6616,"hash":"52cb559225e6314d98293647667c709662fb06d704f987e39c34905e2e57f2f2","entries":[{"name":"add-model-provider","blockChars":296},{"name":"browser-automation","blockChars":324},{"name":"canvas","blockChars":243},{"name":"clawhub","blockChars":299},{"name":"cloud-image-bake","blockChars":282},{"name":"configure-channel","blockChars":284}]},"tools":{"listChars":0,"schemaChars":6113,"entries":[{"name":"ls","summaryChars":192,"summaryHash":"90bdd7a772f66ad236d45f18e28ee873b8c795fe219804f2c19074a867423e20","schemaChars":254,"schemaHash":"ebe8d6a85b7011ec7e0d43a759b3b53b1ce96e682f54a64312b10e89260e9af9","propertiesCount":3},{"name":"read","summaryChars":164,"summaryHash":"d136f5b09e28d671addad4ca800b75b8aa6a36002bc739ead964f618d3e34829","schemaChars":481,"schemaHash":"b1b9b637dfe1dfade40f50c37cf840a298f1992b534cb9425b7470233a6b0cbb","propertiesCount":5},{"name":"edit","summaryChars":130,"summaryHash":"4149500b1f6501ec6450e4c048bdb6844764dd4a888a10846726cbbc7256152e","schemaChars":501,"schemaHash":"adf3140833ca927b84c66c989d6833fdcbd9de011dd2ffc59f9a2c4d3c25f127","propertiesCount":2},{"name":"write","summaryChars":49,"summaryHash":"f9ce3d8ac929a51498c03331b97c59bfaa2bb4d25580a5ddf0102e6a8e173aec","schemaChars":191,"schemaHash":"b61d2da23febf5fbda55e391526f36d283e9e9fb7f1a1dbadcf5c618a0632287","propertiesCount":2},{"name":"apply_patch","summaryChars":71,"summaryHash":"5c1173efe93d080a386a23216bc3e58db2e0033eb3ddea697eb2439938b7cae4","schemaChars":153,"schemaHash":"05521268363ff4f191472c90d69ef08a503ba9acf1d2febc50b3ee68db32ab65","propertiesCount":1},{"name":"exec","summaryChars":503,"summaryHash":"db730359f8e2e0af6b787dd3717ee4d33189b95f908103250e1e203079218503","schemaChars":1242,"schemaHash":"aeabc27dd35e066195bd6dc30a5fd0e3598974789e8784eb7303eee80fe82518","propertiesCount":12}]},"currentTurn":{"promptChars":33,"runtimeContextChars":52,"modelOnlyPromptChars":0}},"inputTokens":200,"outputTokens":20,"cacheRead":0,"cacheWrite":0,"estimatedCostUsd":0,"endedAt":1795077068746,"runtimeMs":337,"lastRunId":"0b31ac4c71614b4da1d57e71721d8ffc"}',NULL,1,1795077068784,'done',1795075700497,'operator',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795077066929,NULL);
CREATE TABLE session_participants (
  session_key TEXT NOT NULL,
  identity_namespace TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  contribution_count INTEGER NOT NULL,
  first_prompted_at INTEGER,
  last_prompted_at INTEGER,
  PRIMARY KEY (session_key, identity_namespace, actor_id),
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
INSERT INTO "session_participants" ("session_key","identity_namespace","actor_id","contribution_count","first_prompted_at","last_prompted_at") VALUES ('agent:main:main','{"type":"observation","pluginId":null,"accountId":null,"senderKind":"unknown"}','gateway-client',5,1795075699724,1795077066231);
CREATE TABLE session_key_contract (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  main_key TEXT NOT NULL,
  canonical_ready TEXT,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "session_key_contract" ("id","main_key","canonical_ready","updated_at") VALUES (1,'main','[1,"main","65024:2779447","1795075699578555357"]',0);
CREATE TABLE session_windows (
  session_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL,
  previous_session_id TEXT,
  reason TEXT CHECK (reason IS NULL OR reason IN ('initial', 'reset', 'rollover', 'fork', 'rewind', 'switch', 'recovery', 'compaction')),
  session_scope TEXT NOT NULL DEFAULT 'conversation' CHECK (session_scope IN ('conversation', 'shared-main', 'group', 'channel')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  transcript_updated_at INTEGER DEFAULT NULL,
  transcript_observed_at INTEGER DEFAULT NULL,
  session_entry_provenance INTEGER NOT NULL DEFAULT 0 CHECK (session_entry_provenance IN (0, 1)),
  acp_owned INTEGER NOT NULL DEFAULT 0 CHECK (acp_owned IN (0, 1)),
  plugin_owner_id TEXT,
  hook_external_content_source TEXT CHECK (hook_external_content_source IS NULL OR hook_external_content_source IN ('gmail', 'webhook')),
  started_at INTEGER,
  ended_at INTEGER,
  status TEXT CHECK (status IS NULL OR status IN ('running', 'done', 'failed', 'killed', 'timeout')),
  chat_type TEXT CHECK (chat_type IS NULL OR chat_type IN ('direct', 'group', 'channel')),
  channel TEXT,
  account_id TEXT,
  primary_conversation_id TEXT,
  model_provider TEXT,
  model TEXT,
  agent_harness_id TEXT,
  parent_session_key TEXT,
  spawned_by TEXT,
  display_name TEXT,
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE,
  FOREIGN KEY (primary_conversation_id) REFERENCES conversations(conversation_id) ON DELETE SET NULL
) STRICT;
INSERT INTO "session_windows" ("session_id","session_key","previous_session_id","reason","session_scope","created_at","updated_at","transcript_updated_at","transcript_observed_at","session_entry_provenance","acp_owned","plugin_owner_id","hook_external_content_source","started_at","ended_at","status","chat_type","channel","account_id","primary_conversation_id","model_provider","model","agent_harness_id","parent_session_key","spawned_by","display_name") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','agent:main:main',NULL,NULL,'shared-main',1795075700495,1795077068784,1795077068717,1795077068717,1,0,NULL,NULL,1795077068409,1795077068746,'done','direct',NULL,NULL,NULL,'stub','stub-1','openclaw',NULL,NULL,NULL);
CREATE TABLE session_canonical_validation_pending (
  session_key TEXT NOT NULL PRIMARY KEY
) STRICT;
CREATE TABLE conversations (
  conversation_id TEXT NOT NULL PRIMARY KEY,
  channel TEXT NOT NULL,
  account_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('direct', 'group', 'channel')),
  peer_id TEXT NOT NULL,
  delivery_target TEXT NOT NULL,
  parent_conversation_id TEXT,
  thread_id TEXT,
  native_channel_id TEXT,
  native_direct_user_id TEXT,
  label TEXT,
  metadata_json TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE conversation_deliveries (
  operation_id TEXT NOT NULL PRIMARY KEY,
  operation_kind TEXT NOT NULL CHECK (operation_kind IN ('send', 'turn')),
  conversation_id TEXT NOT NULL,
  source_session_key TEXT,
  message_hash TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('created', 'queued', 'sent', 'suppressed', 'rejected', 'unknown', 'replied')),
  prepared_message_id TEXT,
  platform_message_id TEXT,
  queue_id TEXT,
  rejection_error TEXT,
  reply_message_id TEXT,
  reply_to_id TEXT,
  reply_thread_id TEXT,
  reply_text TEXT,
  reply_timestamp INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK (
    (status = 'rejected' AND rejection_error IS NOT NULL) OR
    (status != 'rejected' AND rejection_error IS NULL)
  ),
  FOREIGN KEY (conversation_id) REFERENCES conversations(conversation_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE session_conversations (
  session_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  role TEXT NOT NULL DEFAULT 'primary' CHECK (role IN ('primary', 'participant', 'related')),
  route_context_json TEXT,
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, conversation_id, role),
  FOREIGN KEY (session_id) REFERENCES "session_windows"(session_id) ON DELETE CASCADE,
  FOREIGN KEY (conversation_id) REFERENCES conversations(conversation_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE session_members (
  session_key TEXT NOT NULL,
  identity_id TEXT NOT NULL,
  added_by TEXT NOT NULL,
  added_at INTEGER NOT NULL,
  PRIMARY KEY (session_key, identity_id),
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE TABLE session_suggestions (
  id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL,
  author_id TEXT NOT NULL,
  author_label TEXT,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'accepted', 'dismissed')),
  dispatch_token TEXT,
  dispatch_started_at INTEGER,
  dispatch_resolution TEXT CHECK (dispatch_resolution IN ('send', 'queue', 'edit', 'dismiss')),
  CHECK (
    (dispatch_token IS NULL AND dispatch_started_at IS NULL AND dispatch_resolution IS NULL)
    OR (dispatch_token IS NOT NULL AND dispatch_started_at IS NOT NULL AND dispatch_resolution IS NOT NULL)
  ),
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE TABLE board_tabs (
  session_key TEXT NOT NULL,
  tab_id TEXT NOT NULL,
  title TEXT NOT NULL,
  position INTEGER NOT NULL CHECK (position >= 0),
  chat_dock TEXT NOT NULL DEFAULT 'right' CHECK (chat_dock IN ('left', 'right', 'bottom', 'hidden')),
  created_by TEXT NOT NULL CHECK (created_by IN ('user', 'agent')),
  revision INTEGER NOT NULL CHECK (revision >= 0),
  PRIMARY KEY (session_key, tab_id),
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE TABLE board_widgets (
  session_key TEXT NOT NULL,
  name TEXT NOT NULL,
  tab_id TEXT NOT NULL,
  title TEXT,
  content_kind TEXT NOT NULL CHECK (content_kind IN ('html', 'mcp-app', 'plugin')),
  html BLOB,
  descriptor_json TEXT,
  sha256 TEXT NOT NULL,
  view_generation TEXT,
  revision INTEGER NOT NULL CHECK (revision >= 1),
  size_w INTEGER NOT NULL CHECK (size_w BETWEEN 1 AND 12),
  size_h INTEGER NOT NULL CHECK (size_h BETWEEN 1 AND 20),
  position INTEGER NOT NULL CHECK (position >= 0),
  manifest TEXT NOT NULL DEFAULT '{}',
  grant_state TEXT NOT NULL DEFAULT 'none' CHECK (grant_state IN ('none', 'pending', 'granted', 'rejected')),
  granted_sha TEXT,
  created_by TEXT NOT NULL CHECK (created_by IN ('user', 'agent')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (session_key, name),
  FOREIGN KEY (session_key, tab_id) REFERENCES board_tabs(session_key, tab_id) ON DELETE CASCADE,
  CHECK (
    (content_kind = 'html' AND html IS NOT NULL AND descriptor_json IS NULL AND view_generation IS NOT NULL) OR
    (content_kind = 'mcp-app' AND html IS NULL AND descriptor_json IS NOT NULL AND view_generation IS NULL) OR
    (content_kind = 'plugin' AND html IS NULL AND descriptor_json IS NOT NULL AND view_generation IS NULL)
  )
) STRICT;
CREATE TABLE session_progress_cards (
  session_key TEXT NOT NULL PRIMARY KEY,
  markdown TEXT,
  steps_json TEXT,
  revision INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE TABLE heartbeat_outcomes (
  session_key TEXT NOT NULL PRIMARY KEY,
  run_session_key TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('progress', 'done', 'blocked', 'needs_attention')),
  summary TEXT NOT NULL,
  response_reason TEXT,
  priority TEXT CHECK (priority IS NULL OR priority IN ('low', 'normal', 'high')),
  next_check TEXT,
  task_names_json TEXT,
  wake_source TEXT,
  wake_reason TEXT,
  occurred_at INTEGER NOT NULL,
  context_run_id TEXT,
  context_claimed_at INTEGER,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE TABLE message_tool_run_outcomes (
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('tool_delivered', 'mute')),
  run_status TEXT NOT NULL CHECK (run_status IN ('completed', 'errored', 'aborted')),
  occurred_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_goal_operations (
  session_key TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  request_fingerprint TEXT NOT NULL,
  result_json TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (session_key, operation_id)
) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT,
  created_at INTEGER NOT NULL,
  event_zstd BLOB,
  event_utf8_bytes INTEGER CHECK (event_utf8_bytes IS NULL OR event_utf8_bytes >= 0),
  navigation_json TEXT,
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id) REFERENCES "session_windows"(session_id) ON DELETE CASCADE,
  CHECK (
    (event_json IS NOT NULL AND event_zstd IS NULL)
    OR (
      event_json IS NULL AND event_zstd IS NOT NULL
      AND event_utf8_bytes IS NOT NULL
      AND event_utf8_bytes BETWEEN 1 AND 4194304
      AND length(event_zstd) BETWEEN 1 AND 4194304
      AND navigation_json IS NOT NULL
    )
  ),
  CHECK (
    navigation_json IS NULL OR CASE WHEN json_valid(navigation_json) THEN coalesce(
      octet_length(navigation_json) <= 16384
      AND json_type(navigation_json, '$.version') = 'integer'
      AND json_extract(navigation_json, '$.version') = 1
      AND json_type(navigation_json, '$.report') = 'object'
      AND json_extract(navigation_json, '$.report.kind') IN ('canonical', 'leaf', 'link', 'ignored')
      AND json_type(navigation_json, '$.navigation') = 'object'
      AND json_type(navigation_json, '$.reset') = 'object'
      AND json_type(navigation_json, '$.model') = 'object'
      AND json_type(navigation_json, '$.modelBytes') = 'integer'
      AND json_extract(navigation_json, '$.modelBytes') BETWEEN 0 AND 4194304
      AND json_type(navigation_json, '$.modelWithoutCheckpointBytes') = 'integer'
      AND json_extract(navigation_json, '$.modelWithoutCheckpointBytes') BETWEEN 0 AND 4194304
      AND json_type(navigation_json, '$.withoutCustomDataBytes') = 'integer'
      AND json_extract(navigation_json, '$.withoutCustomDataBytes') BETWEEN 0 AND 4194304,
      0) ELSE 0 END
  )
) STRICT;
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',0,'{"type":"session","version":4,"id":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","timestamp":"2026-11-19T08:08:25.752Z","cwd":"/home/ann/.openclaw/workspace"}',1795075705752,NULL,155,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',1,'{"type":"message","id":"d7551c4e-ead2-40a0-8af9-94e87f8a3cfe","parentId":null,"timestamp":"2026-11-19T08:08:25.749Z","message":{"role":"user","content":"hello","timestamp":1795075699724,"idempotencyKey":"65697e3f3d744987ac52ef6449ba0a01:user","__openclaw":{"senderIsOwner":true,"transport":{"clients":[{"id":"gateway-client","mode":"backend"}]}}}}',1795075705749,NULL,347,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',2,'{"type":"thinking_level_change","thinkingLevel":"off","id":"c29e0b1a-8b9d-4e7a-af35-0dd1255e5011","parentId":"d7551c4e-ead2-40a0-8af9-94e87f8a3cfe","timestamp":"2026-11-19T08:08:29.083Z"}',1795075709083,NULL,187,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',3,'{"type":"custom","customType":"model-snapshot","data":{"timestamp":1795075709539,"provider":"stub","modelApi":"openai-completions","modelId":"stub-1"},"id":"6cd3b5f3-9418-46c9-b793-155e719f34a1","parentId":"c29e0b1a-8b9d-4e7a-af35-0dd1255e5011","timestamp":"2026-11-19T08:08:29.550Z"}',1795075709550,NULL,284,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',4,'{"type":"message","id":"25ededce-c449-4ee6-9b7f-995cb773461a","parentId":"6cd3b5f3-9418-46c9-b793-155e719f34a1","timestamp":"2026-11-19T08:08:30.713Z","message":{"role":"assistant","content":[{"type":"text","text":"a text of 210 letters"}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1795075710049,"responseId":"c-27f2ae60","__openclaw":{"runId":"65697e3f3d744987ac52ef6449ba0a01"}}}',1795075710713,NULL,772,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',5,'{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795075710812,"runId":"65697e3f3d744987ac52ef6449ba0a01","sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb"},"id":"84b4cf8f-ba8e-4713-b4da-b0956f0ae410","parentId":"25ededce-c449-4ee6-9b7f-995cb773461a","timestamp":"2026-11-19T08:08:30.812Z"}',1795075710812,NULL,326,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',6,'{"type":"message","id":"f2b88953-3cb6-4b5d-aede-90ba4b333ca4","parentId":"84b4cf8f-ba8e-4713-b4da-b0956f0ae410","timestamp":"2026-11-19T08:08:34.126Z","message":{"role":"user","content":"do TOOL exec {\"command\":\"echo 5\"}","timestamp":1795075713586,"idempotencyKey":"a5eac5addc5743cf8913385c147092bd:user","__openclaw":{"senderIsOwner":true,"transport":{"clients":[{"id":"gateway-client","mode":"backend"}]}}}}',1795075714126,NULL,413,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',7,'{"type":"message","id":"e7874b7c-40cb-41c4-a661-888ff536a7dd","parentId":"f2b88953-3cb6-4b5d-aede-90ba4b333ca4","timestamp":"2026-11-19T08:08:35.846Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_9d2919ce1b7d","name":"exec","arguments":{"command":"echo 5"}}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":1795075715738,"responseId":"c-5e53c38e","__openclaw":{"runId":"a5eac5addc5743cf8913385c147092bd"}}}',1795075715846,NULL,631,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',8,'{"type":"message","id":"8c98687f-0792-4880-9795-536a02210b2a","parentId":"e7874b7c-40cb-41c4-a661-888ff536a7dd","timestamp":"2026-11-19T08:08:37.013Z","message":{"role":"toolResult","toolCallId":"call_9d2919ce1b7d","toolName":"exec","content":[{"type":"text","text":"5"}],"details":{"status":"completed","exitCode":0,"exitSignal":null,"exitReason":"exit","durationMs":80,"aggregated":"5","noOutputTimedOut":false,"cwd":"/home/ann/.openclaw/workspace"},"isError":false,"timestamp":1795075716821,"__openclaw":{"runId":"a5eac5addc5743cf8913385c147092bd"}}}',1795075717013,NULL,557,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',9,'{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call_9d2919ce1b7d:1795075716821","sourceHash":"XjMixoK05GpzfsOhi-SPwguocwmuf5Qs7wjrUfKmU34"}]},"id":"e469720a-5f07-45dd-bae3-b5ef631fc38f","parentId":"8c98687f-0792-4880-9795-536a02210b2a","timestamp":"2026-11-19T08:08:37.142Z"}',1795075717142,NULL,377,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',10,'{"type":"message","id":"b34c0f0b-7241-4e4f-a4e1-45176bf94b50","parentId":"e469720a-5f07-45dd-bae3-b5ef631fc38f","timestamp":"2026-11-19T08:08:37.558Z","message":{"role":"assistant","content":[{"type":"text","text":"STUB-DONE 5"}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1795075717214,"responseId":"c-e1c651cd","__openclaw":{"runId":"a5eac5addc5743cf8913385c147092bd"}}}',1795075717558,NULL,573,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',11,'{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795075717619,"runId":"a5eac5addc5743cf8913385c147092bd","sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb"},"id":"40d85b6d-73e7-47ac-8fbf-d1e5a5cebaa8","parentId":"b34c0f0b-7241-4e4f-a4e1-45176bf94b50","timestamp":"2026-11-19T08:08:37.619Z"}',1795075717619,NULL,326,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',12,'{"type":"message","id":"b0e03d47-7f57-4e36-81bb-1e33fc2260a4","parentId":"40d85b6d-73e7-47ac-8fbf-d1e5a5cebaa8","timestamp":"2026-11-19T08:30:42.747Z","message":{"role":"user","content":"do TOOL exec {\"command\":\"echo 1\"}","timestamp":1795077034876,"idempotencyKey":"4f17f0e2b00e41078af2848a2d7df506:user","__openclaw":{"senderIsOwner":true,"transport":{"clients":[{"id":"gateway-client","mode":"backend"}]}}}}',1795077042747,NULL,413,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',13,'{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call9d2919ce1b7d:1795075716821","sourceHash":"XjMixoK05GpzfsOhi-SPwguocwmuf5Qs7wjrUfKmU34"}]},"id":"8f23615f-d743-4ca0-a3c8-c278d151e267","parentId":"b0e03d47-7f57-4e36-81bb-1e33fc2260a4","timestamp":"2026-11-19T08:30:52.419Z"}',1795077052419,NULL,376,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',14,'{"type":"message","id":"c1b2202a-0d1b-41b2-aad0-7ad5b221c853","parentId":"8f23615f-d743-4ca0-a3c8-c278d151e267","timestamp":"2026-11-19T08:30:52.619Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_d8035bcd9336","name":"exec","arguments":{"command":"echo 1"}}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":1795077052452,"responseId":"c-3c35d2aa","__openclaw":{"runId":"4f17f0e2b00e41078af2848a2d7df506"}}}',1795077052619,NULL,631,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',15,'{"type":"message","id":"5b33c8c9-0135-43a0-b3b7-07be7240018e","parentId":"c1b2202a-0d1b-41b2-aad0-7ad5b221c853","timestamp":"2026-11-19T08:30:54.619Z","message":{"role":"toolResult","toolCallId":"call_d8035bcd9336","toolName":"exec","content":[{"type":"text","text":"1"}],"details":{"status":"completed","exitCode":0,"exitSignal":null,"exitReason":"exit","durationMs":810,"aggregated":"1","noOutputTimedOut":false,"cwd":"/home/ann/.openclaw/workspace"},"isError":false,"timestamp":1795077054617,"__openclaw":{"runId":"4f17f0e2b00e41078af2848a2d7df506"}}}',1795077054619,NULL,558,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',16,'{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call9d2919ce1b7d:1795075716821","sourceHash":"XjMixoK05GpzfsOhi-SPwguocwmuf5Qs7wjrUfKmU34"},{"key":"tool:call_d8035bcd9336:1795077054617","sourceHash":"Q946QX119IGMWlUyaLgM46WAUQmju8a2Ben7C49QtIU"}]},"id":"6b23ba84-eab9-4a2e-b781-36e6d5ae637e","parentId":"5b33c8c9-0135-43a0-b3b7-07be7240018e","timestamp":"2026-11-19T08:30:54.735Z"}',1795077054735,NULL,482,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',17,'{"type":"message","id":"b081479a-fcd0-4c0b-a42a-510750da0ff1","parentId":"6b23ba84-eab9-4a2e-b781-36e6d5ae637e","timestamp":"2026-11-19T08:30:55.239Z","message":{"role":"assistant","content":[{"type":"text","text":"STUB-DONE 1"}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1795077054768,"responseId":"c-8f149f14","__openclaw":{"runId":"4f17f0e2b00e41078af2848a2d7df506"}}}',1795077055239,NULL,573,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',18,'{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795077055530,"runId":"4f17f0e2b00e41078af2848a2d7df506","sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb"},"id":"c0dd48da-2e5c-474d-8a2f-022a576a109e","parentId":"b081479a-fcd0-4c0b-a42a-510750da0ff1","timestamp":"2026-11-19T08:30:55.530Z"}',1795077055530,NULL,326,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',19,'{"type":"message","id":"4d2d07da-ea0f-451a-91aa-cb516fe8ec4d","parentId":"c0dd48da-2e5c-474d-8a2f-022a576a109e","timestamp":"2026-11-19T08:30:59.667Z","message":{"role":"user","content":"do TOOL exec {\"command\":\"echo 2\"}","timestamp":1795077059169,"idempotencyKey":"1c1a5aa46a81439797338e3cd30a4c6e:user","__openclaw":{"senderIsOwner":true,"transport":{"clients":[{"id":"gateway-client","mode":"backend"}]}}}}',1795077059667,NULL,413,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',20,'{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call9d2919ce1b7d:1795075716821","sourceHash":"XjMixoK05GpzfsOhi-SPwguocwmuf5Qs7wjrUfKmU34"},{"key":"tool:calld8035bcd9336:1795077054617","sourceHash":"Q946QX119IGMWlUyaLgM46WAUQmju8a2Ben7C49QtIU"}]},"id":"eadc3942-0a8b-40c9-9e37-7af6ccea17e6","parentId":"4d2d07da-ea0f-451a-91aa-cb516fe8ec4d","timestamp":"2026-11-19T08:31:03.022Z"}',1795077063022,NULL,481,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',21,'{"type":"message","id":"bffa4ee0-e578-4cd0-9f5e-ed645406e639","parentId":"eadc3942-0a8b-40c9-9e37-7af6ccea17e6","timestamp":"2026-11-19T08:31:03.121Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_e9e40a9a909b","name":"exec","arguments":{"command":"echo 2"}}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":1795077063043,"responseId":"c-2aec6c3e","__openclaw":{"runId":"1c1a5aa46a81439797338e3cd30a4c6e"}}}',1795077063121,NULL,631,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',22,'{"type":"message","id":"16438a7a-431d-4286-bc02-9da616d7353b","parentId":"bffa4ee0-e578-4cd0-9f5e-ed645406e639","timestamp":"2026-11-19T08:31:03.964Z","message":{"role":"toolResult","toolCallId":"call_e9e40a9a909b","toolName":"exec","content":[{"type":"text","text":"2"}],"details":{"status":"completed","exitCode":0,"exitSignal":null,"exitReason":"exit","durationMs":106,"aggregated":"2","noOutputTimedOut":false,"cwd":"/home/ann/.openclaw/workspace"},"isError":false,"timestamp":1795077063931,"__openclaw":{"runId":"1c1a5aa46a81439797338e3cd30a4c6e"}}}',1795077063964,NULL,558,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',23,'{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call9d2919ce1b7d:1795075716821","sourceHash":"XjMixoK05GpzfsOhi-SPwguocwmuf5Qs7wjrUfKmU34"},{"key":"tool:calld8035bcd9336:1795077054617","sourceHash":"Q946QX119IGMWlUyaLgM46WAUQmju8a2Ben7C49QtIU"},{"key":"tool:call_e9e40a9a909b:1795077063931","sourceHash":"aKkBUsBFBfXy85ezHBNEcFYIXoF2vp2qQ7GCudcxsuQ"}]},"id":"927889eb-92d0-435e-b823-dfafca400c84","parentId":"16438a7a-431d-4286-bc02-9da616d7353b","timestamp":"2026-11-19T08:31:04.055Z"}',1795077064055,NULL,587,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',24,'{"type":"message","id":"b59305a1-3cc3-46f7-9e94-52e730dbeb09","parentId":"927889eb-92d0-435e-b823-dfafca400c84","timestamp":"2026-11-19T08:31:04.224Z","message":{"role":"assistant","content":[{"type":"text","text":"STUB-DONE 2"}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1795077064101,"responseId":"c-e097b5e4","__openclaw":{"runId":"1c1a5aa46a81439797338e3cd30a4c6e"}}}',1795077064224,NULL,573,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',25,'{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795077064310,"runId":"1c1a5aa46a81439797338e3cd30a4c6e","sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb"},"id":"735f4dae-e96d-4cc3-804e-03d21e25faf6","parentId":"b59305a1-3cc3-46f7-9e94-52e730dbeb09","timestamp":"2026-11-19T08:31:04.310Z"}',1795077064310,NULL,326,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',26,'{"type":"message","id":"05bc6610-e306-482f-870d-6a731ea60b7f","parentId":"735f4dae-e96d-4cc3-804e-03d21e25faf6","timestamp":"2026-11-19T08:31:07.227Z","message":{"role":"user","content":"do TOOL exec {\"command\":\"echo 3\"}","timestamp":1795077066231,"idempotencyKey":"0b31ac4c71614b4da1d57e71721d8ffc:user","__openclaw":{"senderIsOwner":true,"transport":{"clients":[{"id":"gateway-client","mode":"backend"}]}}}}',1795077067227,NULL,413,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',27,'{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call9d2919ce1b7d:1795075716821","sourceHash":"XjMixoK05GpzfsOhi-SPwguocwmuf5Qs7wjrUfKmU34"},{"key":"tool:calld8035bcd9336:1795077054617","sourceHash":"Q946QX119IGMWlUyaLgM46WAUQmju8a2Ben7C49QtIU"},{"key":"tool:calle9e40a9a909b:1795077063931","sourceHash":"aKkBUsBFBfXy85ezHBNEcFYIXoF2vp2qQ7GCudcxsuQ"}]},"id":"088448e9-04b7-4395-bab3-9f1aec62a491","parentId":"05bc6610-e306-482f-870d-6a731ea60b7f","timestamp":"2026-11-19T08:31:08.447Z"}',1795077068447,NULL,586,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',28,'{"type":"message","id":"c912e868-a81b-4306-b216-59473fbad996","parentId":"088448e9-04b7-4395-bab3-9f1aec62a491","timestamp":"2026-11-19T08:31:08.504Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_86fddb666c10","name":"exec","arguments":{"command":"echo 3"}}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":1795077068464,"responseId":"c-79da3433","__openclaw":{"runId":"0b31ac4c71614b4da1d57e71721d8ffc"}}}',1795077068504,NULL,631,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',29,'{"type":"message","id":"d8bad0ad-76e2-4eb2-ae15-926ebd1ed729","parentId":"c912e868-a81b-4306-b216-59473fbad996","timestamp":"2026-11-19T08:31:08.665Z","message":{"role":"toolResult","toolCallId":"call_86fddb666c10","toolName":"exec","content":[{"type":"text","text":"3"}],"details":{"status":"completed","exitCode":0,"exitSignal":null,"exitReason":"exit","durationMs":34,"aggregated":"3","noOutputTimedOut":false,"cwd":"/home/ann/.openclaw/workspace"},"isError":false,"timestamp":1795077068664,"__openclaw":{"runId":"0b31ac4c71614b4da1d57e71721d8ffc"}}}',1795077068665,NULL,557,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',30,'{"type":"custom","customType":"openclaw.cache-ttl","data":{"prunedToolResults":[],"ambiguousToolResultBaseKeys":[],"frozenToolResults":[{"key":"tool:call9d2919ce1b7d:1795075716821","sourceHash":"XjMixoK05GpzfsOhi-SPwguocwmuf5Qs7wjrUfKmU34"},{"key":"tool:calld8035bcd9336:1795077054617","sourceHash":"Q946QX119IGMWlUyaLgM46WAUQmju8a2Ben7C49QtIU"},{"key":"tool:calle9e40a9a909b:1795077063931","sourceHash":"aKkBUsBFBfXy85ezHBNEcFYIXoF2vp2qQ7GCudcxsuQ"},{"key":"tool:call_86fddb666c10:1795077068664","sourceHash":"JqbOlPjS7OFQpsqgbnH30DJ2TgY4pHtY6Ggle7PepXg"}]},"id":"75b31a9e-b2b8-4be8-9574-27b4086b4f57","parentId":"d8bad0ad-76e2-4eb2-ae15-926ebd1ed729","timestamp":"2026-11-19T08:31:08.672Z"}',1795077068672,NULL,692,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',31,'{"type":"message","id":"a37a16ca-a7b8-48a6-82da-0f258887e987","parentId":"75b31a9e-b2b8-4be8-9574-27b4086b4f57","timestamp":"2026-11-19T08:31:08.704Z","message":{"role":"assistant","content":[{"type":"text","text":"STUB-DONE 3"}],"api":"openai-completions","provider":"stub","model":"stub-1","usage":{"input":100,"output":10,"cacheRead":0,"cacheWrite":0,"totalTokens":110,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1795077068677,"responseId":"c-95785770","__openclaw":{"runId":"0b31ac4c71614b4da1d57e71721d8ffc"}}}',1795077068704,NULL,573,NULL);
INSERT INTO "transcript_events" ("session_id","seq","event_json","created_at","event_zstd","event_utf8_bytes","navigation_json") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',32,'{"type":"custom","customType":"openclaw:bootstrap-context:full","data":{"timestamp":1795077068715,"runId":"0b31ac4c71614b4da1d57e71721d8ffc","sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb"},"id":"3c02b2ce-7fd3-4942-a315-fb444674ae76","parentId":"a37a16ca-a7b8-48a6-82da-0f258887e987","timestamp":"2026-11-19T08:31:08.715Z"}',1795077068715,NULL,326,NULL);
CREATE TABLE session_transcript_archives (
  session_id TEXT NOT NULL,
  generation TEXT NOT NULL,
  session_key TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('deleted', 'reset')),
  encoding TEXT NOT NULL CHECK (encoding IN ('identity', 'zstd')),
  archive_blob BLOB NOT NULL,
  archive_sha256 TEXT NOT NULL CHECK (length(archive_sha256) = 64),
  archive_name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  published_at INTEGER,
  publish_attempts INTEGER NOT NULL DEFAULT 0 CHECK (publish_attempts >= 0),
  last_publish_attempt_at INTEGER,
  last_publish_error TEXT,
  PRIMARY KEY (session_id, generation),
  CHECK (archive_name NOT LIKE '%/%' AND archive_name NOT LIKE '%\%')
) STRICT;
CREATE TABLE session_transcript_cold_archives (
  session_id TEXT NOT NULL PRIMARY KEY,
  generation TEXT NOT NULL,
  archive_name TEXT NOT NULL UNIQUE,
  archive_sha256 TEXT NOT NULL CHECK (length(archive_sha256) = 64),
  event_count INTEGER NOT NULL CHECK (event_count >= 1),
  raw_bytes INTEGER NOT NULL CHECK (raw_bytes >= 0),
  archive_bytes INTEGER NOT NULL CHECK (archive_bytes >= 0),
  last_seq INTEGER NOT NULL,
  archived_at INTEGER NOT NULL,
  storage TEXT NOT NULL CHECK (storage IN ('file', 'sqlite')),
  archive_blob BLOB,
  FOREIGN KEY (session_id) REFERENCES "session_windows"(session_id) ON DELETE CASCADE,
  CHECK (length(archive_name) > 0 AND archive_name NOT IN ('.', '..') AND archive_name NOT LIKE '%/%' AND archive_name NOT LIKE '%\%'),
  CHECK ((storage = 'file' AND archive_blob IS NULL) OR (storage = 'sqlite' AND archive_blob IS NOT NULL))
) STRICT;
CREATE TABLE transcript_rewrite_watermarks (
  session_id TEXT NOT NULL PRIMARY KEY,
  generation TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (session_id) REFERENCES "session_windows"(session_id) ON DELETE CASCADE
) STRICT;
INSERT INTO "transcript_rewrite_watermarks" ("session_id","generation","updated_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','d7c9180c88804eb2b35a531de5732862',1795075705754);
CREATE TABLE trajectory_runtime_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  run_id TEXT,
  event_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id) REFERENCES "session_windows"(session_id) ON DELETE CASCADE
) STRICT;
INSERT INTO "trajectory_runtime_events" ("session_id","seq","run_id","event_json","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',0,'65697e3f3d744987ac52ef6449ba0a01','{"traceSchema":"openclaw-trajectory","schemaVersion":1,"traceId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","source":"runtime","type":"session.started","ts":"2026-11-19T08:08:29.424Z","seq":1,"sourceSeq":1,"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","sessionKey":"agent:main:main","runId":"65697e3f3d744987ac52ef6449ba0a01","workspaceDir":"/home/ann/.openclaw/workspace","provider":"stub","modelId":"stub-1","modelApi":"openai-completions","data":{"trigger":"user","sessionFile":"agent:main:main","workspaceDir":"/home/ann/.openclaw/workspace","agentId":"main","messageProvider":"webchat","localModelLean":false,"toolCount":12,"clientToolCount":0}}',1795075709424);
INSERT INTO "trajectory_runtime_events" ("session_id","seq","run_id","event_json","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',1,'65697e3f3d744987ac52ef6449ba0a01','{"traceSchema":"openclaw-trajectory","schemaVersion":1,"traceId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","source":"runtime","type":"trace.metadata","ts":"2026-11-19T08:08:29.495Z","seq":2,"sourceSeq":2,"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","sessionKey":"agent:main:main","runId":"65697e3f3d744987ac52ef6449ba0a01","workspaceDir":"/home/ann/.openclaw/workspace","provider":"stub","modelId":"stub-1","modelApi":"openai-completions","data":{"capturedAt":"2026-11-19T08:08:29.452Z","harness":{"type":"openclaw","name":"OpenClaw","version":"2026.9.6","os":{"platform":"linux","arch":"x64","release":"6.18.44-fc-v595","label":"linux 6.18.44-fc-v595 (x64)"},"runtime":{"node":"v24.21.0"},"invocation":["/srv/nodebin/node_modules/node/bin/node","/usr/lib/node_modules/openclaw/openclaw.mjs","gateway","--port","18799"],"entrypoint":"/usr/lib/node_modules/openclaw/openclaw.mjs","workspaceDir":"$OPENCLAW_STATE_DIR/workspace","sessionFile":"/srv/run/agent:main:main"},"model":{"provider":"stub","name":"stub-1","api":"openai-completions","fastMode":false,"thinkLevel":"off","reasoningLevel":"off"},"config":{"redacted":{"models":{"mode":"merge","providers":{"stub":{"baseUrl":"http://127.0.0.1:18800/v1","api":"openai-completions","models":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6}}}},"agents":{"defaults":{"model":{"primary":"stub/stub-1"},"skipBootstrap":false,"heartbeat":{"every":"0m"},"maxConcurrent":8,"subagents":{"maxConcurrent":8,"archiveAfterMinutes":60},"compaction":{"mode":"safeguard"}},"entries":{"main":{}}},"tools":{"exec":{"security":"allowlist","ask":"on-miss"}},"commands":{"native":"auto","nativeSkills":"auto","restart":true},"gateway":{"port":18799,"mode":"local","bind":"loopback","auth":{"mode":"token"}},"messages":{"ackReactionScope":"group-mentions"}},"runtime":{"timeoutMs":172800000,"trigger":"user","disableTools":false,"toolResultFormat":"markdown"}},"plugins":{"source":"active-registry","importedRuntimePluginIds":["anthropic","browser","canvas","cua-computer","device-pair","file-transfer"],"entries":[{"id":"anthropic","name":"Anthropic","version":"2026.9.6","description":"Anthropic models, Claude CLI, and native Claude session catalog","origin":"bundled","enabled":true,"explicitlyEnabled":false,"activated":true,"activationSource":"default","activationReason":"bundled default enablement","status":"loaded","format":"openclaw","source":"/usr/lib/node_modules/openclaw/dist/extensions/anthropic/index.js","rootDir":"/usr/lib/node_modules/openclaw/dist/extensions/anthropic","cliBackendIds":["claude-cli"],"providerIds":["anthropic"],"mediaUnderstandingProviderIds":["anthropic"]},{"id":"browser","name":"Browser","version":"2026.9.6","description":"Default browser tool plugin","origin":"bundled","enabled":true,"explicitlyEnabled":false,"activated":true,"activationSource":"default","activationReason":"bundled default enablement","status":"loaded","format":"openclaw","source":"/usr/lib/node_modules/openclaw/dist/extensions/browser/index.js","rootDir":"/usr/lib/node_modules/openclaw/dist/extensions/browser"},{"id":"canvas","name":"Canvas","version":"2026.9.6","description":"Presents hosted widget documents on paired macOS panels.","origin":"bundled","enabled":true,"explicitlyEnabled":false,"activated":true,"activationSource":"default","activationReason":"bundled default enablement","status":"loaded","format":"openclaw","source":"/usr/lib/node_modules/openclaw/dist/extensions/canvas/index.js","rootDir":"/usr/lib/node_modules/openclaw/dist/extensions/canvas"},{"id":"cua-computer","name":"CUA Computer","version":"2026.9.6","description":"Experimental CUA Driver computer control for macOS, Windows, and Linux node hosts.","origin":"bundled","enabled":true,"explicitlyEnabled":false,"activated":true,"activationSource":"default","activationReason":"bundled default enablement","status":"loaded","format":"openclaw","source":"/usr/lib/node_modules/openclaw/dist/extensions/cua-computer/index.js","rootDir":"/usr/lib/node_modules/openclaw/dist/extensions/cua-computer"},{"id":"device-pair","name":"Device Pair","description":"QR/bootstrap pairing helpers for OpenClaw devices","origin":"bundled","enabled":true,"explicitlyEnabled":false,"activated":true,"activationSource":"default","activationReason":"bundled default enablement","status":"loaded","format":"openclaw","source":"/usr/lib/node_modules/openclaw/dist/extensions/device-pair/index.js","rootDir":"/usr/lib/node_modules/openclaw/dist/extensions/device-pair"},{"id":"file-transfer","name":"File Transfer","version":"2026.9.6","description":"Fetch, list, and write files on paired nodes via dedicated node commands.","origin":"bundled","enabled":true,"explicitlyEnabled":false,"activated":true,"activationSource":"default","activationReason":"bundled default enablement","status":"loaded","format":"openclaw","source":"/usr/lib/node_modules/openclaw/dist/extensions/file-transfer/index.js","rootDir":"/usr/lib/node_modules/openclaw/dist/extensions/file-transfer","toolNames":["dir_fetch","dir_list","file_fetch","file_write"]}]},"skills":"[Truncated]","prompting":"[Truncated]","redaction":"[Truncated]","metadata":"[Truncated]"}}',1795075709495);
INSERT INTO "trajectory_runtime_events" ("session_id","seq","run_id","event_json","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',2,'65697e3f3d744987ac52ef6449ba0a01','{"traceSchema":"openclaw-trajectory","schemaVersion":1,"traceId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","source":"runtime","type":"context.compiled","ts":"2026-11-19T08:08:29.828Z","seq":3,"sourceSeq":3,"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","sessionKey":"agent:main:main","runId":"65697e3f3d744987ac52ef6449ba0a01","workspaceDir":"/home/ann/.openclaw/workspace","provider":"stub","modelId":"stub-1","modelApi":"openai-completions","data":{"systemPrompt":{"truncated":true,"reason":"trajectory-field-size-limit","originalChars":51890,"limitChars":32768},"prompt":"hello","messages":[],"tools":[{"name":"agents_list","description":"a text of 116 letters","parameters":{"type":"object","properties":{}}},{"name":"agents_wait","description":"a text of 202 letters","parameters":{"type":"object","required":["ids"],"properties":{"ids":{"type":"array","items":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"minItems":1,"maxItems":1000},"timeoutSeconds":{"type":"number","minimum":0}}}},{"name":"apply_patch","description":"Patch one/many files. Input requires *** Begin Patch and *** End Patch.","parameters":{"type":"object","required":["input"],"properties":{"input":{"type":"string","description":"Patch content using the *** Begin Patch/End Patch format."}}}},{"name":"ask_user","description":"a text of 857 letters","parameters":{"type":"object","required":["questions"],"properties":{"questions":{"type":"array","items":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"minItems":1,"maxItems":3},"timeoutSeconds":{"type":"integer","description":"a text of 123 letters"}},"additionalProperties":false}},{"name":"automations","description":"[Malformed diagnostic JSON redacted]","parameters":{"type":"object","required":["action"],"properties":{"action":{"enum":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"type":"string"},"gatewayUrl":{"type":"string"},"timeoutMs":{"type":"integer","minimum":1},"includeDisabled":{"type":"boolean"},"limit":{"type":"integer","minimum":1,"maximum":200,"description":"Maximum jobs returned by action=\"list\""},"offset":{"type":"integer","minimum":0,"description":"Job offset for action=\"list\"; use nextOffset to load the next page"},"job":{"type":"object","properties":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"additionalProperties":true,"description":"[Malformed diagnostic JSON redacted]"},"jobId":"[Truncated]","id":"[Truncated]","in":"[Truncated]","text":"[Truncated]","mode":"[Truncated]","runMode":"[Truncated]","contextMessages":"[Truncated]","agentId":"[Truncated]","sessionKey":"[Truncated]"},"additionalProperties":true}},{"name":"browser","description":"[Malformed diagnostic JSON redacted]","parameters":{"type":"object","required":["action"],"properties":{"action":{"enum":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"type":"string"},"target":{"enum":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"type":"string"},"dashboard":{"type":"string","pattern":"[Malformed diagnostic JSON redacted]","description":"browser:dashboard widget name."},"node":{"type":"string"},"profile":{"type":"string","description":"default if omitted."},"browser":{"type":"string"},"systemProfile":{"type":"string"},"into":{"type":"string"},"domains":{"type":"array","items":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6}},"targetUrl":{"type":"string"},"label":{"type":"string"},"limit":{"type":"integer","minimum":1},"maxChars":{"type":"integer","minimum":0},"mode":{"enum":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"type":"string"},"snapshotFormat":{"enum":{"truncated":true,"reason":"trajectory-depth-limit","limitDepth":6},"type":"string"},"refs":{"enum":"[Truncated]","type":"string"},"interactive":"[Truncated]","compact":"[Truncated]","depth":"[Truncated]","frame":"[Truncated]","labels":"[Truncated]","urls":"[Truncated]","fullPage":"[Truncated]","path":"[Truncated]","element":"[Truncated]","type":"[Truncated]","level":"[Truncated]","filter":"[Truncated]","clear":"[Truncated]","query":"[Truncated]","device":"[Truncated]","colorScheme":"[Truncated]","timezoneId":"[Truncated]","locale":"[Truncated]","paths":"[Truncated]","inputRef":"[Truncated]","dialogId":"[Truncated]","accept":"[Truncated]","promptText":"[Truncated]","kind":"[Truncated]","targetId":"[Truncated]","ref":"[Truncated]","actions":"[Truncated]","stopOnError":"[Truncated]","doubleClick":"[Truncated]","button":"[Truncated]","modifiers":"[Truncated]","x":"[Truncated]","y":"[Truncated]","text":"[Truncated]","submit":"[Truncated]","slowly":"[Truncated]","key":"***","delayMs":"[Truncated]","startRef":"[Truncated]","endRef":"[Truncated]","values":"[Truncated]","fields":"[Truncated]","width":"[Truncated]","height":"[Truncated]","timeMs":"[Truncated]","selector":"[Truncated]","url":"<redacted>","loadState":"[Truncated]"}}}],"providerVisibleTools":"[Truncated]","imagesCount":0,"streamStrategy":"boundary-aware:openai-completions","transport":"auto","transcriptLeafId":null}}',1795075709828);
INSERT INTO "trajectory_runtime_events" ("session_id","seq","run_id","event_json","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',3,'65697e3f3d744987ac52ef6449ba0a01','{"traceSchema":"openclaw-trajectory","schemaVersion":1,"traceId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","source":"runtime","type":"prompt.submitted","ts":"2026-11-19T08:08:29.867Z","seq":4,"sourceSeq":4,"sessionId":"f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb","sessionKey":"agent:main:main","runId":"65697e3f3d744987ac52ef6449ba0a01","workspaceDir":"/home/ann/.openclaw/workspace","provider":"stub","modelId":"stub-1","modelApi":"openai-completions","data":{"prompt":"hello","systemPrompt":{"truncated":true,"reason":"trajectory-field-size-limit","originalChars":51890,"limitChars":32768},"messages":[],"imagesCount":0}}',1795075709867);
CREATE TABLE acp_parent_stream_events (
  session_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, run_id, seq),
  FOREIGN KEY (session_id) REFERENCES "session_windows"(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE transcript_event_identities (
  session_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_type TEXT,
  parent_id TEXT,
  message_idempotency_key TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, event_id),
  FOREIGN KEY (session_id, seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE
) STRICT;
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',0,'session',NULL,NULL,1795075705752);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','d7551c4e-ead2-40a0-8af9-94e87f8a3cfe',1,'message',NULL,'65697e3f3d744987ac52ef6449ba0a01:user',1795075705749);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','c29e0b1a-8b9d-4e7a-af35-0dd1255e5011',2,'thinking_level_change','d7551c4e-ead2-40a0-8af9-94e87f8a3cfe',NULL,1795075709083);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','6cd3b5f3-9418-46c9-b793-155e719f34a1',3,'custom','c29e0b1a-8b9d-4e7a-af35-0dd1255e5011',NULL,1795075709550);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','25ededce-c449-4ee6-9b7f-995cb773461a',4,'message','6cd3b5f3-9418-46c9-b793-155e719f34a1',NULL,1795075710713);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','84b4cf8f-ba8e-4713-b4da-b0956f0ae410',5,'custom','25ededce-c449-4ee6-9b7f-995cb773461a',NULL,1795075710812);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','f2b88953-3cb6-4b5d-aede-90ba4b333ca4',6,'message','84b4cf8f-ba8e-4713-b4da-b0956f0ae410','a5eac5addc5743cf8913385c147092bd:user',1795075714126);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','e7874b7c-40cb-41c4-a661-888ff536a7dd',7,'message','f2b88953-3cb6-4b5d-aede-90ba4b333ca4',NULL,1795075715846);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','8c98687f-0792-4880-9795-536a02210b2a',8,'message','e7874b7c-40cb-41c4-a661-888ff536a7dd',NULL,1795075717013);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','e469720a-5f07-45dd-bae3-b5ef631fc38f',9,'custom','8c98687f-0792-4880-9795-536a02210b2a',NULL,1795075717142);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b34c0f0b-7241-4e4f-a4e1-45176bf94b50',10,'message','e469720a-5f07-45dd-bae3-b5ef631fc38f',NULL,1795075717558);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','40d85b6d-73e7-47ac-8fbf-d1e5a5cebaa8',11,'custom','b34c0f0b-7241-4e4f-a4e1-45176bf94b50',NULL,1795075717619);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b0e03d47-7f57-4e36-81bb-1e33fc2260a4',12,'message','40d85b6d-73e7-47ac-8fbf-d1e5a5cebaa8','4f17f0e2b00e41078af2848a2d7df506:user',1795077042747);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','8f23615f-d743-4ca0-a3c8-c278d151e267',13,'custom','b0e03d47-7f57-4e36-81bb-1e33fc2260a4',NULL,1795077052419);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','c1b2202a-0d1b-41b2-aad0-7ad5b221c853',14,'message','8f23615f-d743-4ca0-a3c8-c278d151e267',NULL,1795077052619);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','5b33c8c9-0135-43a0-b3b7-07be7240018e',15,'message','c1b2202a-0d1b-41b2-aad0-7ad5b221c853',NULL,1795077054619);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','6b23ba84-eab9-4a2e-b781-36e6d5ae637e',16,'custom','5b33c8c9-0135-43a0-b3b7-07be7240018e',NULL,1795077054735);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b081479a-fcd0-4c0b-a42a-510750da0ff1',17,'message','6b23ba84-eab9-4a2e-b781-36e6d5ae637e',NULL,1795077055239);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','c0dd48da-2e5c-474d-8a2f-022a576a109e',18,'custom','b081479a-fcd0-4c0b-a42a-510750da0ff1',NULL,1795077055530);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','4d2d07da-ea0f-451a-91aa-cb516fe8ec4d',19,'message','c0dd48da-2e5c-474d-8a2f-022a576a109e','1c1a5aa46a81439797338e3cd30a4c6e:user',1795077059667);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','eadc3942-0a8b-40c9-9e37-7af6ccea17e6',20,'custom','4d2d07da-ea0f-451a-91aa-cb516fe8ec4d',NULL,1795077063022);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','bffa4ee0-e578-4cd0-9f5e-ed645406e639',21,'message','eadc3942-0a8b-40c9-9e37-7af6ccea17e6',NULL,1795077063121);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','16438a7a-431d-4286-bc02-9da616d7353b',22,'message','bffa4ee0-e578-4cd0-9f5e-ed645406e639',NULL,1795077063964);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','927889eb-92d0-435e-b823-dfafca400c84',23,'custom','16438a7a-431d-4286-bc02-9da616d7353b',NULL,1795077064055);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b59305a1-3cc3-46f7-9e94-52e730dbeb09',24,'message','927889eb-92d0-435e-b823-dfafca400c84',NULL,1795077064224);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','735f4dae-e96d-4cc3-804e-03d21e25faf6',25,'custom','b59305a1-3cc3-46f7-9e94-52e730dbeb09',NULL,1795077064310);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','05bc6610-e306-482f-870d-6a731ea60b7f',26,'message','735f4dae-e96d-4cc3-804e-03d21e25faf6','0b31ac4c71614b4da1d57e71721d8ffc:user',1795077067227);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','088448e9-04b7-4395-bab3-9f1aec62a491',27,'custom','05bc6610-e306-482f-870d-6a731ea60b7f',NULL,1795077068447);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','c912e868-a81b-4306-b216-59473fbad996',28,'message','088448e9-04b7-4395-bab3-9f1aec62a491',NULL,1795077068504);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','d8bad0ad-76e2-4eb2-ae15-926ebd1ed729',29,'message','c912e868-a81b-4306-b216-59473fbad996',NULL,1795077068665);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','75b31a9e-b2b8-4be8-9574-27b4086b4f57',30,'custom','d8bad0ad-76e2-4eb2-ae15-926ebd1ed729',NULL,1795077068672);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','a37a16ca-a7b8-48a6-82da-0f258887e987',31,'message','75b31a9e-b2b8-4be8-9574-27b4086b4f57',NULL,1795077068704);
INSERT INTO "transcript_event_identities" ("session_id","event_id","seq","event_type","parent_id","message_idempotency_key","created_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','3c02b2ce-7fd3-4942-a315-fb444674ae76',32,'custom','a37a16ca-a7b8-48a6-82da-0f258887e987',NULL,1795077068715);
CREATE TABLE context_engine_turn_outbox (
  advancement_key TEXT NOT NULL PRIMARY KEY,
  engine_id TEXT NOT NULL,
  owner_plugin_id TEXT,
  session_id TEXT NOT NULL,
  payload_json TEXT NOT NULL,
  attempt_count INTEGER NOT NULL DEFAULT 0,
  last_attempt_at INTEGER,
  last_error TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE cache_entries (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  value_json TEXT,
  blob BLOB,
  expires_at INTEGER,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT;
CREATE TABLE auth_profile_store (
  store_key TEXT NOT NULL PRIMARY KEY,
  store_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE auth_profile_state (
  state_key TEXT NOT NULL PRIMARY KEY,
  state_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE memory_index_meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
INSERT INTO "memory_index_meta" ("key","value") VALUES ('memory_index_meta_v1','{"model":"fts-only","provider":"none","providerKey":"b2f409223dd1bd19cedee3332de54748a5f323765d4cdcbbb29295199cfde125","sources":["memory","sessions"],"scopeHash":"e861c1d291b583b9f4bf96233b72b9e6984cc92320671a0805e1063946e4b1a1","chunkTokens":400,"chunkOverlap":80,"chunkingVersion":5,"ftsTokenizer":"unicode61","provenanceVersion":1}');
INSERT INTO "memory_index_meta" ("key","value") VALUES ('memory_vector_rebuild_v1','clean');
CREATE TABLE memory_index_sources (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT 'memory',
  hash TEXT NOT NULL,
  mtime REAL NOT NULL,
  size INTEGER NOT NULL,
  UNIQUE (path, source)
) STRICT;
INSERT INTO "memory_index_sources" ("id","path","source","hash","mtime","size") VALUES (1,'USER.md','memory','46e0d8c937df7b104de97a23c58537292672654194879ca9f76b02075e022555',1795075700379.383,1137);
INSERT INTO "memory_index_sources" ("id","path","source","hash","mtime","size") VALUES (2,'sessions/main/f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb.jsonl','sessions','sqlite:1795077068717:bbf37ccdb4bd6c5275cc32baa71e357484cadeacdb247913dd430314910ecbdf',1795077068784.0,15686);
CREATE TABLE memory_index_chunks (
  chunk_rowid INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  path TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT 'memory',
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  hash TEXT NOT NULL,
  model TEXT NOT NULL,
  text TEXT NOT NULL,
  embedding BLOB NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (1,'2636011165b660e979e3718501ea62406a36bfabb94636af0ffb23b30db255b8','USER.md','memory',1,9,'729821e5e320fb3785a67073d4bc094bc2afdd3d2db42d1c2949647cdcddeef5','fts-only','a text of 202 letters',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (2,'ba123b6a489d04d367d14bcf692f83b6f7edd0a5ef71eebcc5c1d8c90d2c1402','USER.md','memory',10,12,'636d1ea984f76044245ed3910a7d280a112997ad98ffbf41e7f3b6da6db324bc','fts-only','- Prefer concise progress updates during implementation work.
```
',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (3,'9c285545b125baf10bbb75c4b09a969d255f67bad77525c03c207c55cd1d52c6','USER.md','memory',13,13,'eff4cf7691ff9fe3091291ec0b1707de005a1340ebc016e29c0588cbfe22febd','fts-only','- Begin each directive with an imperative such as `Always`, `Never`, or `Prefer`.',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (4,'de68dca38df737d72aa32fd7f94db48653fa6e6af26b607a80a917c3f0ef6110','USER.md','memory',14,14,'eb647ddc35243c89108a998bfaffdf9f68adc9e7741d0df947ac33e59602b70a','fts-only','- Record the observation date and either `active` or `superseded` on the metadata line.',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (5,'7c13946a8624ed4ad1f1e8b01e52f237fbbe6612fde794c64674d49f0ae6cce4','USER.md','memory',15,15,'d8499f14253fb5b47bc4db5beba547082e842719f10c9e8209a15e810b832d46','fts-only','a text of 150 letters',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (6,'61c7549fceb8524fde831e8f5e1316af804b2b4025c67ee85f2c7d0196f46c29','USER.md','memory',16,16,'1cbcc605325b4929fc07954167df0de976dcfafb6adf87c037e1a864fb3fff63','fts-only','a text of 142 letters',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (7,'06d0ab7e217c0d1a1ca86218637a01c4b19b2b0d7821aa07c43696899586ec40','USER.md','memory',17,18,'12a0ca9fa28c32573efd88e1d45e17474561e0510c6dfa4737c6d43c243bf5ec','fts-only','a text of 116 letters',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (8,'109b8388475d0361b8660ba4c959438feb1c56212934abfdcd4d3ccd38af6639','USER.md','memory',19,24,'0c600a3edfa04262a7c01c408a42139e76092c5f0f1cff0800a75b8dedac22a7','fts-only','a text of 212 letters',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (9,'746fb551b939564ab54710ef47423a46483d0cd81577c333bdb8fe1bfa2a9760','USER.md','memory',25,26,'404faabbcad845db49eae05b6fb95655ed9c3f9f1e5558e0ddcb06f9ef379aea','fts-only','- Prefer ...
',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (10,'be8b1bac3fa590321cb3a8256e9db0851359ce7d436a636a5b67140752175833','USER.md','memory',27,28,'8da1a5f430d8d85bd74dfdf17744254419aed85f6f684058c39c421ae9ba69d3','fts-only','## Related
',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (11,'1ab8dde351ed481deafb4bf353032053a7816b9e5f5ad219b913e45ba6b7f058','USER.md','memory',29,30,'e5e20b50383eed8728cc4104785cbf82ac88d78e0113de9e0281df965d63bf02','fts-only','- [Agent workspace](/concepts/agent-workspace)
',x'',1795075709184);
INSERT INTO "memory_index_chunks" ("chunk_rowid","id","path","source","start_line","end_line","hash","model","text","embedding","updated_at") VALUES (12,'a435ecc3ceeaf91b23198cecdb1047b266244dbd2dc40fd308810dc08a9625ab','sessions/main/f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb.jsonl','sessions',2,32,'9699713319491cea0c3893cc7a5c1b10a7a30bb091b5db88f6fdd904316f8757','fts-only','a text of 485 letters',x'',1795077072281);
CREATE TABLE memory_index_chunk_recall_metadata (
  chunk_id TEXT PRIMARY KEY,
  importance INTEGER CHECK (importance IS NULL OR importance BETWEEN 1 AND 10),
  triggers TEXT,
  project_key TEXT,
  FOREIGN KEY (chunk_id) REFERENCES memory_index_chunks(id) ON DELETE CASCADE
) STRICT;
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('2636011165b660e979e3718501ea62406a36bfabb94636af0ffb23b30db255b8',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('ba123b6a489d04d367d14bcf692f83b6f7edd0a5ef71eebcc5c1d8c90d2c1402',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('9c285545b125baf10bbb75c4b09a969d255f67bad77525c03c207c55cd1d52c6',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('de68dca38df737d72aa32fd7f94db48653fa6e6af26b607a80a917c3f0ef6110',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('7c13946a8624ed4ad1f1e8b01e52f237fbbe6612fde794c64674d49f0ae6cce4',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('61c7549fceb8524fde831e8f5e1316af804b2b4025c67ee85f2c7d0196f46c29',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('06d0ab7e217c0d1a1ca86218637a01c4b19b2b0d7821aa07c43696899586ec40',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('109b8388475d0361b8660ba4c959438feb1c56212934abfdcd4d3ccd38af6639',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('746fb551b939564ab54710ef47423a46483d0cd81577c333bdb8fe1bfa2a9760',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('be8b1bac3fa590321cb3a8256e9db0851359ce7d436a636a5b67140752175833',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('1ab8dde351ed481deafb4bf353032053a7816b9e5f5ad219b913e45ba6b7f058',NULL,NULL,NULL);
INSERT INTO "memory_index_chunk_recall_metadata" ("chunk_id","importance","triggers","project_key") VALUES ('a435ecc3ceeaf91b23198cecdb1047b266244dbd2dc40fd308810dc08a9625ab',NULL,NULL,NULL);
CREATE TABLE memory_index_chunk_provenance (
  chunk_id TEXT PRIMARY KEY,
  origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
  session_kind TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
  observed_at INTEGER NOT NULL,
  supersedes_key TEXT,
  FOREIGN KEY (chunk_id) REFERENCES memory_index_chunks(id) ON DELETE CASCADE
) STRICT;
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('2636011165b660e979e3718501ea62406a36bfabb94636af0ffb23b30db255b8','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('ba123b6a489d04d367d14bcf692f83b6f7edd0a5ef71eebcc5c1d8c90d2c1402','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('9c285545b125baf10bbb75c4b09a969d255f67bad77525c03c207c55cd1d52c6','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('de68dca38df737d72aa32fd7f94db48653fa6e6af26b607a80a917c3f0ef6110','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('7c13946a8624ed4ad1f1e8b01e52f237fbbe6612fde794c64674d49f0ae6cce4','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('61c7549fceb8524fde831e8f5e1316af804b2b4025c67ee85f2c7d0196f46c29','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('06d0ab7e217c0d1a1ca86218637a01c4b19b2b0d7821aa07c43696899586ec40','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('109b8388475d0361b8660ba4c959438feb1c56212934abfdcd4d3ccd38af6639','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('746fb551b939564ab54710ef47423a46483d0cd81577c333bdb8fe1bfa2a9760','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('be8b1bac3fa590321cb3a8256e9db0851359ce7d436a636a5b67140752175833','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('1ab8dde351ed481deafb4bf353032053a7816b9e5f5ad219b913e45ba6b7f058','agent','unknown',1795075700379,NULL);
INSERT INTO "memory_index_chunk_provenance" ("chunk_id","origin_class","session_kind","observed_at","supersedes_key") VALUES ('a435ecc3ceeaf91b23198cecdb1047b266244dbd2dc40fd308810dc08a9625ab','agent','interactive',1795077068677,NULL);
CREATE TABLE memory_entry_origins (
  entry_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  session_key TEXT,
  origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
  observed_at INTEGER NOT NULL,
  PRIMARY KEY (entry_key, agent_id, session_id)
) STRICT;
CREATE TABLE memory_session_tombstones (
  session_id TEXT NOT NULL PRIMARY KEY,
  agent_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE memory_embedding_cache (
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  provider_key TEXT NOT NULL,
  hash TEXT NOT NULL,
  embedding BLOB NOT NULL,
  dims INTEGER,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, model, provider_key, hash)
) STRICT;
CREATE TABLE memory_index_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  revision INTEGER NOT NULL
) STRICT;
INSERT INTO "memory_index_state" ("id","revision") VALUES (1,27);
CREATE TABLE standing_intents (
  intent_key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  description TEXT NOT NULL,
  trigger_keywords TEXT NOT NULL,
  trigger_embedding TEXT,
  channel_scope TEXT,
  sender_scope TEXT,
  creator_sender TEXT CHECK (creator_sender IS NULL OR length(trim(creator_sender)) > 0),
  status TEXT NOT NULL CHECK (status IN ('pending', 'armed', 'fired', 'done', 'cancelled', 'expired')),
  expires_at INTEGER NOT NULL,
  max_fires INTEGER NOT NULL CHECK (max_fires > 0),
  fire_count INTEGER NOT NULL DEFAULT 0 CHECK (fire_count >= 0),
  cooldown_seconds INTEGER NOT NULL DEFAULT 86400 CHECK (cooldown_seconds >= 0),
  last_fired_at INTEGER,
  created_at INTEGER NOT NULL,
  source_session_id TEXT
) STRICT;
CREATE VIRTUAL TABLE standing_intents_fts USING fts5(
  trigger_keywords,
  content = 'standing_intents',
  content_rowid = 'intent_key',
  tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE session_transcript_index_state (
  session_id TEXT NOT NULL PRIMARY KEY,
  indexed_seq INTEGER NOT NULL,
  leaf_event_id TEXT,
  needs_rebuild INTEGER NOT NULL DEFAULT 0,
  active_event_count INTEGER NOT NULL DEFAULT 0,
  active_message_count INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE
) STRICT;
INSERT INTO "session_transcript_index_state" ("session_id","indexed_seq","leaf_event_id","needs_rebuild","active_event_count","active_message_count","updated_at") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',32,'3c02b2ce-7fd3-4942-a315-fb444674ae76',0,32,18,1795077068715);
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL,
  active_position INTEGER NOT NULL CHECK (active_position >= 0),
  event_seq INTEGER NOT NULL,
  message_position INTEGER CHECK (message_position IS NULL OR message_position >= 0),
  context_eligible INTEGER,
  PRIMARY KEY (session_id, active_position),
  FOREIGN KEY (session_id, event_seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE
) STRICT;
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',0,1,0,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',1,2,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',2,3,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',3,4,1,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',4,5,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',5,6,2,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',6,7,3,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',7,8,4,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',8,9,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',9,10,5,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',10,11,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',11,12,6,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',12,13,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',13,14,7,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',14,15,8,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',15,16,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',16,17,9,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',17,18,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',18,19,10,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',19,20,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',20,21,11,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',21,22,12,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',22,23,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',23,24,13,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',24,25,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',25,26,14,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',26,27,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',27,28,15,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',28,29,16,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',29,30,NULL,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',30,31,17,1);
INSERT INTO "session_transcript_active_events" ("session_id","active_position","event_seq","message_position","context_eligible") VALUES ('f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb',31,32,NULL,1);
CREATE VIRTUAL TABLE session_transcript_fts USING fts5(
  text,
  session_id UNINDEXED,
  message_id UNINDEXED,
  role UNINDEXED,
  timestamp UNINDEXED,
  tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE session_transcript_fts_rows (
  id INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL,
  message_id TEXT
) STRICT;
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (1,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','d7551c4e-ead2-40a0-8af9-94e87f8a3cfe');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (2,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','25ededce-c449-4ee6-9b7f-995cb773461a');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (3,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','f2b88953-3cb6-4b5d-aede-90ba4b333ca4');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (4,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b34c0f0b-7241-4e4f-a4e1-45176bf94b50');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (5,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b0e03d47-7f57-4e36-81bb-1e33fc2260a4');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (6,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b081479a-fcd0-4c0b-a42a-510750da0ff1');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (7,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','4d2d07da-ea0f-451a-91aa-cb516fe8ec4d');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (8,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','b59305a1-3cc3-46f7-9e94-52e730dbeb09');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (9,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','05bc6610-e306-482f-870d-6a731ea60b7f');
INSERT INTO "session_transcript_fts_rows" ("id","session_id","message_id") VALUES (10,'f1fb561e-2450-4b4f-aeb0-f9c1fbb148fb','a37a16ca-a7b8-48a6-82da-0f258887e987');
CREATE TABLE session_pending_inputs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  input_id TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL,
  session_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  run_id TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  message_json TEXT NOT NULL,
  lifecycle_generation TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'interrupted', 'cancelled')),
  accepted_at INTEGER NOT NULL,
  consumed_event_id TEXT,
  UNIQUE (session_id, idempotency_key),
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE,
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE session_input_completions (
  session_key TEXT NOT NULL,
  session_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  run_id TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  outcome_json TEXT NOT NULL,
  succeeded INTEGER NOT NULL CHECK (succeeded IN (0, 1)),
  completed_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, idempotency_key),
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE,
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE
) STRICT;
CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5(
  text,
  id UNINDEXED,
  path UNINDEXED,
  source UNINDEXED,
  model UNINDEXED,
  start_line UNINDEXED,
  end_line UNINDEXED
);
CREATE VIRTUAL TABLE memory_index_paths_fts USING fts5(
        path,
        source UNINDEXED
        
      );
CREATE INDEX idx_agent_session_nodes_updated_at
  ON session_nodes(updated_at DESC, session_key);
CREATE INDEX idx_agent_session_nodes_last_interaction_at
  ON session_nodes(last_interaction_at DESC, session_key);
CREATE INDEX idx_agent_session_nodes_label
  ON session_nodes(label, session_key)
  WHERE label IS NOT NULL;
CREATE INDEX idx_agent_session_nodes_parent_session_key
  ON session_nodes(parent_session_key, session_key);
CREATE INDEX idx_agent_session_nodes_spawned_by
  ON session_nodes(spawned_by, session_key);
CREATE INDEX idx_agent_session_nodes_status
  ON session_nodes(status, session_key)
  WHERE status IS NOT NULL;
CREATE INDEX idx_agent_session_nodes_archived_at
  ON session_nodes(archived_at, session_key)
  WHERE archived_at IS NOT NULL;
CREATE INDEX idx_agent_session_nodes_active
  ON session_nodes(session_key)
  WHERE archived_at IS NULL;
CREATE INDEX idx_agent_session_nodes_current_session_id
  ON session_nodes(current_session_id);
CREATE INDEX idx_agent_session_nodes_entry_valid_pending
  ON session_nodes(session_key)
  WHERE entry_valid = 0;
CREATE INDEX idx_agent_session_nodes_entry_not_valid
  ON session_nodes(session_key)
  WHERE entry_valid != 1;
CREATE TRIGGER session_nodes_entry_valid_after_insert
AFTER INSERT ON session_nodes
BEGIN
  UPDATE session_nodes SET entry_valid = 0 WHERE session_key = NEW.session_key;
END;
CREATE TRIGGER session_nodes_entry_valid_after_entry_update
AFTER UPDATE OF entry_json ON session_nodes
BEGIN
  UPDATE session_nodes SET entry_valid = 0 WHERE session_key = NEW.session_key;
END;
CREATE TRIGGER session_nodes_entry_valid_after_identity_update
AFTER UPDATE OF current_session_id, updated_at ON session_nodes
BEGIN
  UPDATE session_nodes SET entry_valid = 0 WHERE session_key = NEW.session_key;
END;
CREATE INDEX idx_agent_session_windows_updated_at
  ON session_windows(updated_at DESC, session_id);
CREATE INDEX idx_agent_session_windows_session_key
  ON session_windows(session_key, updated_at DESC, session_id);
CREATE INDEX idx_agent_session_windows_created_at
  ON session_windows(created_at DESC, session_id);
CREATE INDEX idx_agent_session_windows_conversation
  ON session_windows(primary_conversation_id, updated_at DESC, session_id)
  WHERE primary_conversation_id IS NOT NULL;
CREATE TRIGGER session_nodes_canonical_pending_after_insert
AFTER INSERT ON session_nodes
BEGIN
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT NEW.session_key
  WHERE NOT EXISTS (
    SELECT 1 FROM session_canonical_validation_pending WHERE session_key = NEW.session_key
  );
END;
CREATE TRIGGER session_nodes_canonical_pending_after_update
AFTER UPDATE OF session_key, current_session_id, entry_json, entry_valid,
  parent_session_key, spawned_by, fork_source_session_key ON session_nodes
WHEN OLD.session_key IS NOT NEW.session_key
  OR OLD.current_session_id IS NOT NEW.current_session_id
  OR OLD.entry_json IS NOT NEW.entry_json
  OR OLD.entry_valid IS NOT NEW.entry_valid
  OR OLD.parent_session_key IS NOT NEW.parent_session_key
  OR OLD.spawned_by IS NOT NEW.spawned_by
  OR OLD.fork_source_session_key IS NOT NEW.fork_source_session_key
BEGIN
  DELETE FROM session_canonical_validation_pending
  WHERE session_key = OLD.session_key AND OLD.session_key IS NOT NEW.session_key;
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT NEW.session_key
  WHERE NOT EXISTS (
    SELECT 1 FROM session_canonical_validation_pending WHERE session_key = NEW.session_key
  );
END;
CREATE TRIGGER session_nodes_canonical_pending_after_delete
AFTER DELETE ON session_nodes
BEGIN
  DELETE FROM session_canonical_validation_pending WHERE session_key = OLD.session_key;
END;
CREATE TRIGGER session_windows_canonical_pending_after_insert
AFTER INSERT ON session_windows
BEGIN
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT node.session_key FROM session_nodes AS node
  WHERE node.current_session_id = NEW.session_id
    AND NOT EXISTS (
      SELECT 1 FROM session_canonical_validation_pending AS pending
      WHERE pending.session_key = node.session_key
    );
END;
CREATE TRIGGER session_windows_canonical_pending_after_update
AFTER UPDATE OF session_id, session_key ON session_windows
WHEN OLD.session_id IS NOT NEW.session_id OR OLD.session_key IS NOT NEW.session_key
BEGIN
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT node.session_key FROM session_nodes AS node
  WHERE node.current_session_id IN (OLD.session_id, NEW.session_id)
    AND NOT EXISTS (
      SELECT 1 FROM session_canonical_validation_pending AS pending
      WHERE pending.session_key = node.session_key
    );
END;
CREATE TRIGGER session_windows_canonical_pending_after_delete
AFTER DELETE ON session_windows
BEGIN
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT node.session_key FROM session_nodes AS node
  WHERE node.current_session_id = OLD.session_id
    AND NOT EXISTS (
      SELECT 1 FROM session_canonical_validation_pending AS pending
      WHERE pending.session_key = node.session_key
    );
END;
CREATE TRIGGER session_key_contract_canonical_pending_after_insert
AFTER INSERT ON session_key_contract
BEGIN
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT node.session_key FROM session_nodes AS node
  WHERE NOT EXISTS (
    SELECT 1 FROM session_canonical_validation_pending AS pending
    WHERE pending.session_key = node.session_key
  );
END;
CREATE TRIGGER session_key_contract_canonical_pending_after_update
AFTER UPDATE OF main_key ON session_key_contract
WHEN OLD.main_key IS NOT NEW.main_key
BEGIN
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT node.session_key FROM session_nodes AS node
  WHERE NOT EXISTS (
    SELECT 1 FROM session_canonical_validation_pending AS pending
    WHERE pending.session_key = node.session_key
  );
END;
CREATE TRIGGER session_key_contract_canonical_pending_after_delete
AFTER DELETE ON session_key_contract
BEGIN
  INSERT INTO session_canonical_validation_pending (session_key)
  SELECT node.session_key FROM session_nodes AS node
  WHERE NOT EXISTS (
    SELECT 1 FROM session_canonical_validation_pending AS pending
    WHERE pending.session_key = node.session_key
  );
END;
CREATE INDEX idx_agent_conversations_lookup
  ON conversations(channel, account_id, kind, peer_id, thread_id);
CREATE UNIQUE INDEX idx_agent_conversations_identity
  ON conversations(
    channel,
    account_id,
    kind,
    peer_id,
    IFNULL(parent_conversation_id, ''),
    IFNULL(thread_id, '')
  );
CREATE INDEX idx_agent_conversations_updated
  ON conversations(updated_at DESC, conversation_id);
CREATE INDEX idx_agent_conversation_deliveries_reply
  ON conversation_deliveries(conversation_id, platform_message_id, prepared_message_id)
  WHERE status IN ('queued', 'sent', 'replied');
CREATE INDEX idx_agent_conversation_deliveries_updated
  ON conversation_deliveries(updated_at DESC, operation_id);
CREATE TRIGGER session_conversations_route_context_invalidate_after_update
AFTER UPDATE OF role, last_seen_at ON session_conversations
WHEN NEW.route_context_json IS OLD.route_context_json
BEGIN
  UPDATE session_conversations
  SET route_context_json = NULL
  WHERE session_id = NEW.session_id
    AND conversation_id = NEW.conversation_id
    AND role = NEW.role;
END;
CREATE INDEX idx_agent_session_conversations_conversation
  ON session_conversations(conversation_id, last_seen_at DESC, session_id);
CREATE UNIQUE INDEX idx_agent_session_conversations_primary
  ON session_conversations(session_id)
  WHERE role = 'primary';
CREATE INDEX idx_agent_session_members_identity
  ON session_members(identity_id, session_key);
CREATE INDEX idx_agent_session_suggestions_session_state_created
  ON session_suggestions(session_key, state, created_at, id);
CREATE INDEX idx_agent_session_suggestions_author_created
  ON session_suggestions(author_id, created_at, id);
CREATE INDEX idx_agent_board_widgets_tab_position
  ON board_widgets(session_key, tab_id, position);
CREATE INDEX idx_agent_message_tool_run_outcomes_occurred
  ON message_tool_run_outcomes(occurred_at DESC, id DESC);
CREATE INDEX idx_agent_session_goal_operations_expiry
  ON session_goal_operations(expires_at);
CREATE INDEX idx_agent_session_transcript_archives_pending
  ON session_transcript_archives(created_at, session_id, generation)
  WHERE published_at IS NULL;
CREATE INDEX idx_agent_session_transcript_archives_retention
  ON session_transcript_archives(created_at, session_id, generation);
CREATE INDEX idx_agent_trajectory_runtime_run
  ON trajectory_runtime_events(session_id, run_id, seq)
  WHERE run_id IS NOT NULL;
CREATE INDEX idx_agent_acp_parent_stream_run
  ON acp_parent_stream_events(run_id, seq);
CREATE UNIQUE INDEX idx_agent_transcript_message_idempotency
  ON transcript_event_identities(session_id, message_idempotency_key)
  WHERE message_idempotency_key IS NOT NULL;
CREATE INDEX idx_agent_transcript_event_identity_sequence
  ON transcript_event_identities(session_id, seq);
CREATE INDEX idx_agent_transcript_event_parent
  ON transcript_event_identities(session_id, parent_id)
  WHERE parent_id IS NOT NULL;
CREATE INDEX idx_agent_transcript_event_sequence
  ON transcript_event_identities(session_id, event_type, seq DESC);
CREATE INDEX idx_agent_context_engine_turn_outbox_engine
  ON context_engine_turn_outbox(engine_id, created_at);
CREATE INDEX idx_agent_cache_expiry
  ON cache_entries(scope, expires_at, key)
  WHERE expires_at IS NOT NULL;
CREATE INDEX idx_agent_cache_updated
  ON cache_entries(scope, updated_at DESC, key);
CREATE INDEX idx_standing_intents_lifecycle
  ON standing_intents(status, expires_at, last_fired_at);
CREATE INDEX idx_standing_intents_scope
  ON standing_intents(status, channel_scope, sender_scope);
CREATE TRIGGER standing_intents_fts_after_insert
AFTER INSERT ON standing_intents
BEGIN
  INSERT INTO standing_intents_fts(rowid, trigger_keywords)
  VALUES (new.intent_key, new.trigger_keywords);
END;
CREATE TRIGGER standing_intents_fts_after_delete
AFTER DELETE ON standing_intents
BEGIN
  INSERT INTO standing_intents_fts(standing_intents_fts, rowid, trigger_keywords)
  VALUES ('delete', old.intent_key, old.trigger_keywords);
END;
CREATE TRIGGER standing_intents_fts_after_update
AFTER UPDATE OF trigger_keywords ON standing_intents
BEGIN
  INSERT INTO standing_intents_fts(standing_intents_fts, rowid, trigger_keywords)
  VALUES ('delete', old.intent_key, old.trigger_keywords);
  INSERT INTO standing_intents_fts(rowid, trigger_keywords)
  VALUES (new.intent_key, new.trigger_keywords);
END;
CREATE UNIQUE INDEX idx_agent_transcript_active_event_seq
  ON session_transcript_active_events(session_id, event_seq);
CREATE UNIQUE INDEX idx_agent_transcript_active_messages
  ON session_transcript_active_events(session_id, message_position)
  WHERE message_position IS NOT NULL;
CREATE INDEX idx_agent_transcript_context_pending
  ON session_transcript_active_events(session_id)
  WHERE context_eligible IS NULL;
CREATE INDEX idx_session_transcript_fts_rows_session_message
  ON session_transcript_fts_rows(session_id, message_id);
CREATE TRIGGER session_transcript_fts_rows_after_delete
AFTER DELETE ON session_transcript_fts_rows
BEGIN
  DELETE FROM session_transcript_fts WHERE rowid = OLD.id;
END;
CREATE TRIGGER memory_index_sources_revision_after_insert
AFTER INSERT ON memory_index_sources
BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE TRIGGER memory_index_sources_revision_after_update
AFTER UPDATE ON memory_index_sources
BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE TRIGGER memory_index_sources_revision_after_delete
AFTER DELETE ON memory_index_sources
BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE TRIGGER memory_index_chunks_revision_after_insert
AFTER INSERT ON memory_index_chunks
BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE TRIGGER memory_index_chunks_revision_after_update
AFTER UPDATE ON memory_index_chunks
BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE TRIGGER memory_index_chunks_revision_after_delete
AFTER DELETE ON memory_index_chunks
BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE INDEX idx_memory_embedding_cache_updated_at
  ON memory_embedding_cache(updated_at);
CREATE INDEX idx_memory_index_sources_source
  ON memory_index_sources(source);
CREATE INDEX idx_memory_index_chunks_path_source
  ON memory_index_chunks(path, source);
CREATE INDEX idx_memory_index_chunks_path
  ON memory_index_chunks(path);
CREATE INDEX idx_memory_index_chunks_source
  ON memory_index_chunks(source);
CREATE INDEX idx_agent_session_pending_inputs_session
  ON session_pending_inputs(session_key, session_id, seq DESC);
CREATE TRIGGER memory_index_chunks_fts_after_insert
      AFTER INSERT ON memory_index_chunks
      BEGIN
        INSERT INTO memory_index_chunks_fts (rowid, text, id, path, source, model, start_line, end_line)
        VALUES (NEW.chunk_rowid, NEW.text, NEW.id, NEW.path, NEW.source, NEW.model, NEW.start_line, NEW.end_line);
      END;
CREATE TRIGGER memory_index_chunks_fts_after_update
      AFTER UPDATE OF chunk_rowid, text, id, path, source, model, start_line, end_line ON memory_index_chunks
      BEGIN
        DELETE FROM memory_index_chunks_fts WHERE rowid = OLD.chunk_rowid;
        INSERT INTO memory_index_chunks_fts (rowid, text, id, path, source, model, start_line, end_line)
        VALUES (NEW.chunk_rowid, NEW.text, NEW.id, NEW.path, NEW.source, NEW.model, NEW.start_line, NEW.end_line);
      END;
CREATE TRIGGER memory_index_chunks_fts_after_delete
      AFTER DELETE ON memory_index_chunks
      BEGIN
        DELETE FROM memory_index_chunks_fts WHERE rowid = OLD.chunk_rowid;
      END;
CREATE TRIGGER memory_index_paths_fts_after_insert
      AFTER INSERT ON memory_index_sources
      BEGIN
        INSERT INTO memory_index_paths_fts (rowid, path, source)
        VALUES (NEW.id, NEW.path, NEW.source);
      END;
CREATE TRIGGER memory_index_paths_fts_after_update
      AFTER UPDATE OF id, path, source ON memory_index_sources
      BEGIN
        DELETE FROM memory_index_paths_fts
        WHERE rowid = OLD.id;
        INSERT INTO memory_index_paths_fts (rowid, path, source)
        VALUES (NEW.id, NEW.path, NEW.source);
      END;
CREATE TRIGGER memory_index_paths_fts_after_delete
      AFTER DELETE ON memory_index_sources
      BEGIN
        DELETE FROM memory_index_paths_fts
        WHERE rowid = OLD.id;
      END;
