-- Rows as schema version V0001 stores them, made by make_samples.py. Never changed.
INSERT INTO chat_conversation (conversation_key, owner, conversation_id, title, metadata, created_at, updated_at, expires_at, last_position, system_position, context_start, version, message_count, parent_key, forked_at) VALUES
    (1, '', 'kinds', 'Wetter in Zürich', '{"tags":["a","b"],"n":1}', '2026-01-02 03:04:06.678901', '2026-01-03 03:04:06.678901', NULL, 12, 1, 0, 2, 12, NULL, NULL);
INSERT INTO chat_conversation (conversation_key, owner, conversation_id, title, metadata, created_at, updated_at, expires_at, last_position, system_position, context_start, version, message_count, parent_key, forked_at) VALUES
    (2, 'Ada & Co. ☕', 'kinds', NULL, NULL, '2026-01-02 03:04:07.678901', '2026-01-03 03:04:07.678901', NULL, 1, NULL, 0, 1, 1, NULL, NULL);
INSERT INTO chat_conversation (conversation_key, owner, conversation_id, title, metadata, created_at, updated_at, expires_at, last_position, system_position, context_start, version, message_count, parent_key, forked_at) VALUES
    (3, '', 'gap', NULL, NULL, '2026-01-02 03:04:08.678901', '2026-01-03 03:04:08.678901', NULL, 3, NULL, 0, 2, 2, NULL, NULL);
INSERT INTO chat_conversation (conversation_key, owner, conversation_id, title, metadata, created_at, updated_at, expires_at, last_position, system_position, context_start, version, message_count, parent_key, forked_at) VALUES
    (4, '', 'expiring', NULL, NULL, '2026-01-02 03:04:09.678901', '2026-01-03 03:04:09.678901', '2026-01-02 03:04:05.678901', 2, NULL, 0, 1, 2, NULL, NULL);
INSERT INTO chat_conversation (conversation_key, owner, conversation_id, title, metadata, created_at, updated_at, expires_at, last_position, system_position, context_start, version, message_count, parent_key, forked_at) VALUES
    (5, '', 'empty', NULL, NULL, '2026-01-02 03:04:10.678901', '2026-01-03 03:04:10.678901', NULL, 0, NULL, 0, 1, 0, NULL, NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 1, 'sample-00', 'system', 'Be brief.', NULL, NULL, '2026-01-02 03:04:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 2, 'sample-01', 'user', 'It''s 100% fine:
	tabs, "quotes", ''quotes'', \\backslashes; -- ümläuts, 漢字, 👩‍👩‍👧 :a %s', NULL, NULL, '2026-01-02 03:05:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 3, 'sample-02', 'assistant', 'Let me look.', '{"format":"chatkeep/1","parts":[{"type":"thinking","text":"First, the weather.","signature":"c2ln"},{"type":"text"},{"type":"tool_call","id":"call_1","name":"weather","arguments":"{\\"city\\": \\"Zürich\\",  \\"days\\":1e0}"},{"type":"tool_call","id":"call_2","name":"search","arguments":"{}"}]}', NULL, '2026-01-02 03:06:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 4, 'sample-03', 'tool', '12 °C', '{"format":"chatkeep/1","parts":[{"type":"tool_result","call_id":"call_1","name":"weather"}]}', NULL, '2026-01-02 03:07:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 5, 'sample-04', 'tool', 'a map', '{"format":"chatkeep/1","parts":[{"type":"tool_result","call_id":"call_2","content":[{"type":"text","text":"a map"},{"type":"media","mime_type":"image/png","data":"iVBORw0KAP8="}],"is_error":true}]}', NULL, '2026-01-02 03:08:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 6, 'sample-05', 'assistant', '12 degrees.', '{"format":"chatkeep/1","parts":[{"type":"text"}],"metadata":{"tokens":17,"big":1180591620717411303424,"all":{"a":[1,2.5,null,true,""]}}}', NULL, '2026-01-02 03:09:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 7, 'sample-06', 'user', 'and this?', '{"format":"chatkeep/1","parts":[{"type":"text","cache_control":{"type":"ephemeral"}},{"type":"media","mime_type":"image/jpeg","url":"https://example.org/a.jpg","name":"a.jpg"}],"name":"ada"}', NULL, '2026-01-02 03:10:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 8, 'sample-07', 'critic', '', '{"format":"chatkeep/1","parts":[{"type":"opaque","kind":"acme.future","data":{"k":["v",1]}}]}', NULL, '2026-01-02 03:11:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 9, 'sample-08', 'user', '', NULL, NULL, '2026-01-02 03:12:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 10, 'sample-09', 'assistant', '', '{"format":"chatkeep/1","parts":[]}', NULL, '2026-01-02 03:13:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 11, 'sample-10', 'user', 'a NUL � and a lone surrogate �', '{"format":"chatkeep/1","parts":[{"type":"text","text":"a NUL \\u0000 and a lone surrogate \\ud800"}]}', NULL, '2026-01-02 03:14:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (1, 12, 'sample-11', 'user', 'outer', '{"format":"chatkeep/1","parts":[{"type":"tool_result","call_id":"call_3","x":1}]}', NULL, '2026-01-02 03:15:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (2, 1, 'sample-00', 'user', 'another owner''s', NULL, NULL, '2026-01-02 03:04:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (3, 1, 'one', 'user', 'one', NULL, NULL, '2026-01-02 03:04:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (3, 3, 'three', 'user', 'three', NULL, NULL, '2026-01-02 03:04:05.678901', NULL);
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (4, 1, 'long', 'user', 'kept for long', NULL, NULL, '2026-01-02 03:04:05.678901', '2999-01-02 03:04:05.678901');
INSERT INTO chat_message (conversation_key, position, message_id, role, content, body, token_count, created_at, expires_at) VALUES
    (4, 2, 'gone', 'user', 'gone', NULL, NULL, '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05.678901');
